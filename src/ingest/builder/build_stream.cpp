#include "ingest/builder/build_stream.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include "base/spin.hpp"
#include "headrace/device/kernel.hpp"
#include "ingest/builder/kernels.hpp"

namespace headrace::ingest {

namespace {

/// After this many unsuccessful polls, the stream is queried, so that a device fault is noticed within milliseconds.
constexpr std::uint32_t kLooks = 1024;
/// Polls of a waiting thread before it sleeps between polls: more than a short burst takes.
constexpr std::uint32_t kLooksAwake = 4096;
constexpr std::chrono::microseconds kSleep{50};

}  // namespace

BuildStream::BuildStream(Device device, std::uint32_t bursts)
    : stream_(device),
      words_(device, MemoryKind::mapped, kDoneWords * sizeof(std::uint64_t)),
      bursts_(bursts),
      blocks_(std::make_unique<std::atomic<std::uint32_t>[]>(bursts)) {
  std::memset(words_.data(), 0, words_.bytes());
}

BuildStream::~BuildStream() { static_cast<void>(stream_.wait()); }

Status BuildStream::close(std::uint64_t number, std::uint32_t blocks) noexcept {
  if (blocks == 0) {
    blocks = 1;
    if (const Status said = launch(stream_, say_kernel(), LaunchShape{}, argument(number)); !said) return said;
  }
  blocks_[number % bursts_].store(blocks, std::memory_order_release);  // after all polls of the previous burst
  return {};
}

bool BuildStream::said(std::uint64_t number) const noexcept {
  const auto* const words = words_.as<const std::uint64_t>();
  // The last block most likely finishes last.
  for (std::uint32_t block = blocks_[number % bursts_].load(std::memory_order_acquire); block-- > 0;) {
    auto& word = const_cast<std::uint64_t&>(words[block]);
    // Pairs with say_done(). A later burst may have passed this one.
    if (std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire) < number) return false;
  }
  return true;
}

void BuildStream::note_done(std::uint64_t number) noexcept {
  std::uint64_t known = done_.load(std::memory_order_relaxed);
  while (known < number && !done_.compare_exchange_weak(known, number, std::memory_order_acq_rel)) {
  }
}

/// Queries the stream itself: it is idle, busy or has failed.
Result<bool> BuildStream::ask(std::uint64_t number) noexcept {
  const auto idle = stream_.ready();
  if (idle && *idle) note_done(number);
  return idle;
}

Result<bool> BuildStream::done(std::uint64_t number) noexcept {
  if (number <= done_.load(std::memory_order_acquire)) return true;
  if (said(number)) {
    note_done(number);
    return true;
  }
  return (looks_.fetch_add(1, std::memory_order_relaxed) + 1) % kLooks == 0 ? ask(number) : Result<bool>(false);
}

Status BuildStream::wait(std::uint64_t number) noexcept {
  for (std::uint32_t looks = 1;; ++looks) {
    auto copied = done(number);
    if (copied && !*copied && looks > kLooksAwake) {
      std::this_thread::sleep_for(kSleep);
      copied = ask(number);
    }
    if (!copied) return copied.error();
    if (*copied) return {};
    detail::relax(looks);
  }
}

}  // namespace headrace::ingest
