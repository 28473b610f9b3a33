#include "device/copies/lingering_copier.hpp"

#include <algorithm>
#include <chrono>

#include "base/spin.hpp"
#include "device/backend.hpp"
#include "device/known_range.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

namespace {

/// The words of all shares, and those of all blocks, are adjacent, so that the host reads one cache line for each kind.
struct LingerWords {
  LingerShare shares[kLingerShares];
  alignas(kNoSharing) std::uint64_t answered[kLingerShares];
  alignas(kNoSharing) std::uint32_t left[kLingerShares];
};

/// Polls for an answer between two checks whether the device has failed.
constexpr std::uint32_t kSpinsPerLook = 4096;

}  // namespace

LingeringCopier::LingeringCopier(Device device, Duration linger, Duration hang_after)
    : device_(device),
      hang_after_(hang_after),
      shape_(linger_shape(device)),
      words_(std::make_shared<const Buffer>(device, MemoryKind::mapped, sizeof(LingerWords))),
      kernel_(device, [words = words_](bool /*at_once*/) { replace(*words, 0); }) {
  kernel_.keep(words_);
  auto& words = *words_->as<LingerWords>() = {};
  view_ = {.shares = words.shares,
           .answered = words.answered,
           .left = words.left,
           .linger_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(linger).count())};
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

/// Deals parts to shares in turn, so that many blocks work on a short list.
void LingeringCopier::post(std::uint32_t count) noexcept {
  ++sequence_;
  for (std::uint32_t i = 0; i < kLingerPartsMax; ++i) {
    auto& share = const_cast<LingerShare&>(view_.shares[i % kLingerShares]);
    std::uint64_t* const words = share.words + std::size_t{3} * (i / kLingerShares);
    const bool is_part = i < count;
    const auto word = [&](std::uint64_t value) { return LingerWord::of(is_part ? value : 0, sequence_); };
    // These pair with LingerBody::take.
    ResidentKernel::tell(words[0], word(reinterpret_cast<std::uintptr_t>(parts_[i].to())));
    ResidentKernel::tell(words[1], word(reinterpret_cast<std::uintptr_t>(parts_[i].from())));
    ResidentKernel::tell(words[2], word(parts_[i].bytes()));
  }
}

void LingeringCopier::replace(const Buffer& words, std::uint32_t generation) noexcept {
  for (std::uint32_t i = 0; i < kLingerShares; ++i) {
    ResidentKernel::tell(words.as<LingerShare>()[i].words[LingerShare::kGeneration], generation);
  }
}

Status LingeringCopier::launch() noexcept {
  ++generation_;
  if (generation_ == 0) generation_ = 1;
  replace(*words_, generation_);
  // The kernel ends by itself, so it need not count as resident where other work may wait for its end. On a CPU device
  // it still needs its own thread, because other work there waits for its turn.
  const Status status = kernel_.run([this](StreamRef stream) {
    return device_.properties().host_cores ? launch_resident(stream, linger_kernel(), shape_, view_, generation_)
                                           : headrace::launch(stream, linger_kernel(), shape_, view_, generation_);
  });
  launched_ = status.ok();
  return status;
}

/// If the last kernel could not be launched, the previous list may have been copied in part. It is dropped once the
/// earlier kernel has exited.
Status LingeringCopier::begin() noexcept {
  if (launched_ || answered()) return {};
  if (const Status left = kernel_.leave(hang_after_); !left) return left;
  for (std::uint32_t i = 0; i < kLingerShares; ++i) ResidentKernel::tell(view_.answered[i], sequence_);
  return {};
}

bool LingeringCopier::left() const noexcept {
  const std::span<const std::uint32_t> words(view_.left, shape_.blocks);
  return std::ranges::any_of(words, [&](const auto& word) { return ResidentKernel::heard(word) == generation_; });
}

bool LingeringCopier::answered() const noexcept {
  const std::span<const std::uint64_t> words(view_.answered, kLingerShares);
  return std::ranges::all_of(words, [&](const auto& word) { return ResidentKernel::heard(word) == sequence_; });
}

Status LingeringCopier::wait() noexcept {
  const Time until = SteadyClock::now() + hang_after_;
  for (std::uint32_t spins = 1;; ++spins) {
    const bool gone = left();  // read this first: a block answers before it exits
    if (answered()) return {};
    if (gone) {
      if (const Status launched = launch(); !launched) return launched;
    } else if (spins % kSpinsPerLook == 0) {
      if (const auto ready = kernel_.stream().ready(); !ready) return ready.error();
      hung_ = SteadyClock::now() > until;
      if (hung_) return kernel_.leave(Duration::zero());
    }
    relax(spins);
  }
}

Result<bool> LingeringCopier::copy(std::span<const Copy> copies) noexcept {
  if (hung_) return Errc::hung;
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
