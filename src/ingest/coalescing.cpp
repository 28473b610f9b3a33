#include "ingest/coalescing.hpp"

#include <algorithm>

namespace headrace::ingest {

namespace {

/// Smaller bursts come from senders that wait for answers, or cost too little for a sleep to pay off.
constexpr double kBulkBytes = 32 << 10;
/// Bursts that are further apart follow a stall, or are too rare for a sleep to pay off.
constexpr Duration kSoon = std::chrono::microseconds(300);
constexpr double kGrowth = 1.5;
constexpr double kRateKept = 0.85;
constexpr double kWeight = 1.0 / 64;
/// A trial of sleeping takes this many bursts. After the longest time awake, a trial costs a sender that waits for
/// acknowledgements about 2% of its rate.
constexpr std::uint32_t kTry = 64;
constexpr std::uint32_t kTryMost = 512;
constexpr std::uint32_t kAwakeMost = 8192;

}  // namespace

void Coalescing::Taken::add(std::uint64_t burst_bytes, Duration since) noexcept {
  const double weight = ns == 0 ? 1 : kWeight;
  bytes += weight * (static_cast<double>(burst_bytes) - bytes);
  ns += weight * (static_cast<double>(since.count()) - ns);
}

void Coalescing::note(const Burst& burst) noexcept {
  if (burst.bytes == 0) {
    pause_ = {};
    return;
  }
  const Duration since = burst.at - came_at_;
  came_at_ = burst.at;
  if (burst.copies_wait) {
    pause_ = burst.drained && since < 2 * kThinPause ? kThinPause : Duration{};
  } else {
    const bool soon = since < kSoon;
    if (soon && burst.drained) judge(burst.bytes, since);
    pause_ = soon && burst.drained && sleeping_ ? kBulkPause : Duration{};
  }
}

void Coalescing::judge(std::uint64_t bytes, Duration since) noexcept {
  if (!sleeping_) {
    awake_.add(bytes, since);
    const bool bulk = awake_.bytes >= kBulkBytes;
    if (!bulk || ++bursts_ < awake_most_) return;
    slept_ = {};
    sleeping_ = true;
    bursts_ = 0;
  } else if (pause_ > Duration{}) {
    slept_.add(bytes, since);
    if (++bursts_ < kTry || sleeping_gains()) return;
    // If sleeping paid off for long, it is tried again soon; if it never did, it is tried less and less often.
    awake_most_ = bursts_ > kTryMost ? kFirstTryAfter : std::min(2 * awake_most_, kAwakeMost);
    sleeping_ = false;
    bursts_ = 0;
  }
}

bool Coalescing::sleeping_gains() const noexcept {
  return slept_.bytes >= kGrowth * awake_.bytes && slept_.bytes * awake_.ns >= kRateKept * awake_.bytes * slept_.ns;
}

}  // namespace headrace::ingest
