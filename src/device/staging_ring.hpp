#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "headrace/base/bytes.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Pinned slots, one behind the other in one allocation, so that what fills neighbours may travel as one. Numbers that
/// go up are parts of what passes through: number n in slot n % count(), once n - count() has left it. Any thread may
/// fill a number that it alone has claimed; one thread sends them and says when a slot is free again.
class StagingRing {
 public:
  /// What has become of a number. `free` is that of its slot: the one before has left it.
  enum class Phase : std::uint8_t { free, filled, sent };

  [[nodiscard]] static Result<StagingRing> create(Device device, std::size_t count, std::size_t slot_bytes) noexcept {
    StagingRing ring;
    ring.slots_.reset(new (std::nothrow) Slot[count]);
    if (ring.slots_ == nullptr) return Errc::out_of_memory;
    auto pinned = Buffer::allocate(device, MemoryKind::pinned, count * slot_bytes);
    if (!pinned) return pinned.error();
    ring.pinned_ = *std::move(pinned);
    ring.count_ = count;
    ring.slot_bytes_ = slot_bytes;
    return ring;
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * slot_bytes_; }
  /// Where the slot of a number starts in the ring.
  [[nodiscard]] std::size_t offset(std::uint64_t number) const noexcept { return number % count_ * slot_bytes_; }
  [[nodiscard]] std::byte* data() const noexcept { return pinned_.data(); }
  /// Numbers from this one to the ring's end.
  [[nodiscard]] std::size_t to_end(std::uint64_t number) const noexcept { return count_ - number % count_; }
  /// The copies from the slot of a number to their targets: of whoever may touch the slot.
  [[nodiscard]] std::vector<Copy>& spread(std::uint64_t number) const noexcept { return slot(number).spread; }

  [[nodiscard]] bool is(std::uint64_t number, Phase phase) const noexcept {
    return slot(number).word.load(std::memory_order_acquire) == word(number, phase);  // pairs with set()
  }
  /// Sent, or already gone from its slot. Asked by the thread that sends.
  [[nodiscard]] bool was_sent(std::uint64_t number) const noexcept {
    return slot(number).word.load(std::memory_order_relaxed) >= word(number, Phase::sent);
  }
  /// The slot and its copies pass to whoever acts on the phase next.
  void set(std::uint64_t number, Phase phase) noexcept {
    slot(number).word.store(word(number, phase), std::memory_order_release);  // pairs with is()
  }
  /// The device has read what was sent.
  void release(std::uint64_t number) noexcept { set(number + count_, Phase::free); }
  /// All slots are free, and numbers start from 0. No other thread is at work.
  void reset() noexcept {
    for (std::uint64_t number = 0; number < count_; ++number) set(number, Phase::free);
  }

 private:
  /// A line each: many threads look at their own.
  struct alignas(kNoSharing) Slot {
    std::atomic<std::uint64_t> word{0};
    std::vector<Copy> spread;
  };

  StagingRing() noexcept = default;
  /// Goes up as a slot goes from phase to phase, and from number to number.
  [[nodiscard]] std::uint64_t word(std::uint64_t number, Phase phase) const noexcept {
    constexpr std::uint64_t kPhases = 3;
    return number / count_ * kPhases + static_cast<std::uint64_t>(phase);
  }
  [[nodiscard]] Slot& slot(std::uint64_t number) const noexcept { return slots_[number % count_]; }

  std::unique_ptr<Slot[]> slots_;
  std::size_t count_ = 0;
  std::size_t slot_bytes_ = 0;
  Buffer pinned_;
};

}  // namespace headrace::detail
