#include "device/copies/lingering_copier.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/spin.hpp"
#include "device/backend.hpp"
#include "device/known_range.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

namespace {

/// Behind the shares. The words of all shares, and of all blocks, lie beside each other: the host looks at one line for
/// each kind.
constexpr std::size_t kAnswered = kLingerShares * sizeof(LingerShare);
constexpr std::size_t kLeft = kAnswered + kNoSharing;
constexpr std::size_t kBytes = kLeft + kNoSharing;
static_assert(kLingerShares * sizeof(std::uint64_t) <= kNoSharing);

/// Looks for an answer before it asks whether the device has failed.
constexpr std::uint32_t kSpinsPerLook = 4096;

template <class T>
T load(const T& word) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
}

/// A release, so that whoever sees the word sees what it points to.
void store(std::uint64_t& word, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

}  // namespace

LingeringCopier::LingeringCopier(Device device, Duration linger)
    : device_(device), stream_(device), shape_(linger_shape(device)), words_(device, MemoryKind::mapped, kBytes) {
  std::fill_n(words_.data(), words_.bytes(), std::byte{0});
  view_ = {.shares = reinterpret_cast<const LingerShare*>(words_.data()),
           .answered = reinterpret_cast<std::uint64_t*>(words_.data() + kAnswered),
           .left = reinterpret_cast<std::uint32_t*>(words_.data() + kLeft),
           .linger_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(linger).count())};
}

LingeringCopier::~LingeringCopier() {
  replace(0);
  static_cast<void>(stream_.wait());  // whoever uses the device next learns that it has failed
}

std::uint32_t LingeringCopier::list(std::span<const Copy> copies) noexcept {
  if (copies.size() > kLingerPartsMax) return 0;
  const DeviceBackend& device = device_.backend();
  KnownRanges ranges([&device](const void* data) { return device.look_up(data); });
  const auto reached = [&](const void* data, std::size_t bytes) {
    const KnownRange& range = ranges.find(data);
    return range.kernels_reach && holds(range, data, bytes);
  };
  std::uint32_t count = 0;
  for (const Copy& copy : copies) {
    if (copy.bytes > (kLingerPartsMax - count) * kPartBytes) return 0;
    if (!reached(copy.to, copy.bytes) || !reached(copy.from, copy.bytes)) return 0;
    for_each_part(copy.to, copy.from, copy.bytes, kPartBytes, [&](const Part& part) {
      if (count < kLingerPartsMax) parts_[count] = part;
      ++count;
    });
    if (count > kLingerPartsMax) return 0;
  }
  return count;
}

/// Dealt out one by one, so that a short list has many blocks.
void LingeringCopier::post(std::uint32_t count) noexcept {
  ++sequence_;
  for (std::uint32_t i = 0; i < kLingerPartsMax; ++i) {
    auto& share = const_cast<LingerShare&>(view_.shares[i % kLingerShares]);
    std::uint64_t* const words = share.words + std::size_t{3} * (i / kLingerShares);
    const bool is_part = i < count;
    const auto word = [&](std::uint64_t value) { return LingerWord::of(is_part ? value : 0, sequence_); };
    store(words[0], word(reinterpret_cast<std::uintptr_t>(parts_[i].to())));  // these pair with LingerBody::take
    store(words[1], word(reinterpret_cast<std::uintptr_t>(parts_[i].from())));
    store(words[2], word(parts_[i].bytes()));
  }
}

void LingeringCopier::replace(std::uint32_t generation) noexcept {
  for (std::uint32_t i = 0; i < kLingerShares; ++i) {
    store(const_cast<LingerShare&>(view_.shares[i]).words[LingerShare::kGeneration], generation);
  }
}

Status LingeringCopier::launch() noexcept {
  ++generation_;
  if (generation_ == 0) generation_ = 1;
  replace(generation_);
  // It ends by itself, so that it need not count as resident where work may wait for its end. On a CPU device it takes
  // a thread of its own all the same: others wait for their turn there.
  const Status status = device_.properties().host_cores
                            ? launch_resident(stream_, linger_kernel(), shape_, view_, generation_)
                            : headrace::launch(stream_, linger_kernel(), shape_, view_, generation_);
  launched_ = status.ok();
  return status;
}

/// Where the last kernel could not be launched, the list before may have been copied in part: it is forgotten, once the
/// kernel before that one has left.
Status LingeringCopier::begin() noexcept {
  if (launched_ || answered()) return {};
  if (const Status left = stream_.wait(); !left) return left;
  for (std::uint32_t i = 0; i < kLingerShares; ++i) store(view_.answered[i], sequence_);
  return {};
}

bool LingeringCopier::left() const noexcept {
  const std::span<const std::uint32_t> words(view_.left, shape_.blocks);
  return std::ranges::any_of(words, [this](const std::uint32_t& word) { return load(word) == generation_; });
}

bool LingeringCopier::answered() const noexcept {
  const std::span<const std::uint64_t> words(view_.answered, kLingerShares);
  return std::ranges::all_of(words, [this](const std::uint64_t& word) { return load(word) == sequence_; });
}

Status LingeringCopier::wait() noexcept {
  for (std::uint32_t spins = 1;; ++spins) {
    const bool gone = left();  // looked at first: a block answers before it leaves
    if (answered()) return {};
    if (gone) {
      if (const Status launched = launch(); !launched) return launched;
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
  if (const Status begun = begin(); !begun) return begun.error();
  post(count);
  if (!launched_) {
    if (const Status launched = launch(); !launched) return launched.error();
  }
  if (const Status waited = wait(); !waited) return waited.error();
  return true;
}

}  // namespace headrace::detail
