#include "headrace/device/pool.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kSlotAlignment = 256;
constexpr std::uint32_t kNone = ~std::uint32_t{0};  ///< Index under the lowest slot of the stack.
constexpr unsigned kCountShift = 32;

constexpr std::uint32_t index_of(std::uint64_t top) noexcept { return static_cast<std::uint32_t>(top); }

/// The word that puts `index` on top after `top`; its count differs, so a top seen before is never seen again (ABA).
constexpr std::uint64_t next_top(std::uint64_t top, std::uint32_t index) noexcept {
  return (((top >> kCountShift) + 1) << kCountShift) | index;
}

std::size_t checked_bytes(std::size_t stride, std::size_t slot_bytes, std::size_t slot_count) {
  if (slot_count == 0 || slot_count >= kNone) {
    throw UsageError(fmt::format("a pool's slot count must be 1 to {}, not {}", kNone - 1, slot_count));
  }
  std::size_t bytes = 0;
  if (stride < slot_bytes || __builtin_mul_overflow(stride, slot_count, &bytes)) {
    throw UsageError(fmt::format("a pool of {} slots of {} bytes is too big", slot_count, slot_bytes));
  }
  return bytes;
}

}  // namespace

Pool::Pool(Device device, MemoryKind kind, std::size_t slot_bytes, std::size_t slot_count)
    : count_(slot_count),
      stride_(align_up(slot_bytes, kSlotAlignment)),
      buffer_(device, kind, checked_bytes(stride_, slot_bytes, slot_count)),
      below_(std::make_unique<std::atomic<std::uint32_t>[]>(slot_count)),
      top_(0) {
  for (std::size_t i = 0; i < slot_count; ++i) {
    below_[i].store(i + 1 < slot_count ? static_cast<std::uint32_t>(i + 1) : kNone, std::memory_order_relaxed);
  }
}

std::optional<std::uint32_t> Pool::try_take() noexcept {
  std::uint64_t top = top_.load(std::memory_order_acquire);  // pairs with give()
  while (index_of(top) != kNone) {
    // May be stale where another thread takes the same slot; then the count has moved on and the exchange fails.
    const std::uint32_t below = below_[index_of(top)].load(std::memory_order_relaxed);
    if (top_.compare_exchange_weak(top, next_top(top, below), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return index_of(top);
    }
  }
  return std::nullopt;
}

void Pool::give(std::uint32_t index) noexcept {
  std::uint64_t top = top_.load(std::memory_order_relaxed);
  do {
    below_[index].store(index_of(top), std::memory_order_relaxed);
    // Release: what the giver did with the slot comes before what the next taker does.
  } while (
      !top_.compare_exchange_weak(top, next_top(top, index), std::memory_order_acq_rel, std::memory_order_relaxed));
}

}  // namespace headrace
