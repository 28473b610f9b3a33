#include "device/lingering_copier.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "device/backend.hpp"
#include "device/cpu/spin.hpp"
#include "device/known_range.hpp"
#include "headrace/base/bytes.hpp"

namespace headrace::detail {

namespace {

/// The words of all blocks lie beside each other: the host looks at one line for each kind.
constexpr std::size_t kAnswered = kNoSharing;
constexpr std::size_t kLeft = 2 * kNoSharing;
constexpr std::size_t kWordBytes = 3 * kNoSharing;
static_assert(kLingerBlocksMax * sizeof(std::uint32_t) <= kNoSharing);

/// Looks for an answer before it asks whether the device has failed.
constexpr std::uint32_t kSpinsPerLook = 4096;

std::uint32_t load(const std::uint32_t& word) noexcept {
  return std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
}

}  // namespace

LingeringCopier::LingeringCopier(Device device, Duration linger)
    : device_(device),
      stream_(device),
      shape_(linger_shape(device)),
      words_(device, MemoryKind::mapped, kWordBytes),
      pieces_(device, MemoryKind::mapped, kLingerPiecesMax * sizeof(Piece)) {
  std::fill_n(words_.data(), words_.bytes(), std::byte{0});
  view_ = {.posted = reinterpret_cast<const std::uint64_t*>(words_.data()),
           .pieces = pieces_.as<Piece>(),
           .answered = reinterpret_cast<std::uint32_t*>(words_.data() + kAnswered),
           .left = reinterpret_cast<std::uint32_t*>(words_.data() + kLeft),
           .linger_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(linger).count())};
}

LingeringCopier::~LingeringCopier() {
  post(0, 0);
  static_cast<void>(stream_.wait());  // whoever uses the device next learns that it has failed
}

std::uint32_t LingeringCopier::list(std::span<const Copy> copies) noexcept {
  if (copies.size() > kLingerPiecesMax) return 0;
  const DeviceBackend& device = device_.backend();
  KnownRanges ranges([&device](const void* data) { return device.look_up(data); });
  const auto reached = [&](const void* data, std::size_t bytes) {
    const KnownRange& range = ranges.find(data);
    return range.kernels_reach && holds(range, data, bytes);
  };
  std::uint32_t count = 0;
  for (const Copy& copy : copies) {
    if (copy.bytes > (kLingerPiecesMax - count) * kPieceBytes) return 0;
    if (!reached(copy.to, copy.bytes) || !reached(copy.from, copy.bytes)) return 0;
    for_each_piece(copy.to, copy.from, copy.bytes, [&](const Piece& piece) {
      if (count < kLingerPiecesMax) pieces_.as<Piece>()[count] = piece;
      ++count;
    });
    if (count > kLingerPiecesMax) return 0;
  }
  return count;
}

void LingeringCopier::post(std::uint32_t generation, std::uint32_t count) noexcept {
  const LingerPost post{generation, count, sequence_};
  std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(*view_.posted))
      .store(post.word(), std::memory_order_release);  // pairs with LingerBody::look
}

Status LingeringCopier::launch_for(std::uint32_t count) noexcept {
  generation_ = generation_ % LingerPost::kGenerationMax + 1;
  post(generation_, count);
  // It ends by itself, so that it need not count as resident where work may wait for its end. On a CPU device it takes
  // a thread of its own all the same: others wait for their turn there.
  const Status status = device_.kind() == DeviceKind::cpu
                            ? launch_resident(stream_, linger_kernel(), shape_, view_, generation_)
                            : launch(stream_, linger_kernel(), shape_, view_, generation_);
  launched_ = status.ok();
  return status;
}

bool LingeringCopier::left() const noexcept {
  const std::span<const std::uint32_t> words(view_.left, shape_.blocks);
  return std::ranges::any_of(words, [this](const std::uint32_t& word) { return load(word) == generation_; });
}

Status LingeringCopier::wait_for(std::uint32_t count) noexcept {
  const std::span<const std::uint32_t> answers(view_.answered, std::min(count, shape_.blocks));
  for (std::uint32_t spins = 1;; ++spins) {
    const bool gone = left();  // looked at first: a block answers before it leaves
    if (std::ranges::all_of(answers, [this](const std::uint32_t& word) { return load(word) == sequence_; })) return {};
    if (gone) {
      if (const Status launched = launch_for(count); !launched) return launched;
    } else if (spins % kSpinsPerLook == 0) {
      if (const auto ready = stream_.ready(); !ready) return ready.error();
    }
    if (spins % kSpins == 0) {
      std::this_thread::yield();
    } else {
      spin_pause();
    }
  }
}

Result<bool> LingeringCopier::copy(std::span<const Copy> copies) noexcept {
  const std::uint32_t count = list(copies);
  if (count == 0) return false;
  ++sequence_;
  if (!launched_ || left()) {
    if (const Status launched = launch_for(count); !launched) return launched.error();
  } else {
    post(generation_, count);
  }
  if (const Status waited = wait_for(count); !waited) return waited.error();
  return true;
}

}  // namespace headrace::detail
