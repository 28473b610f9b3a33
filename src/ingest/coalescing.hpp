#pragma once

#include <chrono>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::ingest {

/// How long a receiver sleeps before it takes the next burst, so that one wake-up serves several packets: a wake-up
/// costs a processor more than a packet does. It sleeps in two cases.
///
/// Packets of datagrams come one by one, and none of them is waited for: each sleep takes 0.2 ms.
///
/// A TCP sender fills bursts faster than the receiver empties them. A sleep of 60 us then lets several segments
/// gather. A sender whose window is small would instead stop and wait, so the receiver compares what it takes with and
/// without sleeping for a while, and sleeps on only where bursts grow by half and the rate keeps 85%.
class Coalescing {
 public:
  struct Burst {
    std::uint64_t bytes = 0;
    Time at{};                 ///< When it was taken.
    bool drained = true;       ///< No packet was left in the source.
    bool copies_wait = false;  ///< What it holds may be copied later, as datagrams may.
  };

  /// To sleep before the next burst; 0: not at all.
  [[nodiscard]] Duration pause() const noexcept { return pause_; }
  void note(const Burst& burst) noexcept;

  static constexpr Duration kThinPause = std::chrono::microseconds(200);
  static constexpr Duration kBulkPause = std::chrono::microseconds(60);

 private:
  static constexpr std::uint32_t kFirstTryAfter = 64;

  /// What bursts brought lately.
  struct Taken {
    double bytes = 0;  ///< The bytes of a burst.
    double ns = 0;     ///< From the burst before.
    void add(std::uint64_t burst_bytes, Duration since) noexcept;
  };

  void judge(std::uint64_t bytes, Duration since) noexcept;
  [[nodiscard]] bool sleeping_gains() const noexcept;

  Time came_at_{};
  Duration pause_{};
  bool sleeping_ = false;
  Taken awake_;
  Taken slept_;
  std::uint32_t bursts_ = 0;                   ///< Since sleeping began, or was given up.
  std::uint32_t awake_most_ = kFirstTryAfter;  ///< Before sleeping is tried again.
};

}  // namespace headrace::ingest
