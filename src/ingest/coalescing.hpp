#pragma once

#include <chrono>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::ingest {

/// How long a receiver sleeps before it takes the next burst, so that one wake-up serves several packets: a wake-up
/// costs a processor more than a packet does. It sleeps in two cases.
///
/// If datagrams come one by one and none of them is urgent, each sleep takes 0.2 ms.
///
/// If a TCP sender fills bursts faster than the receiver empties them, a sleep of 60 us lets several segments gather. A
/// sender with a small window would instead stop and wait. The receiver therefore compares bursts with and without
/// sleeping for a while, and continues to sleep only if bursts grow by half and the rate stays at 85% or more.
class Coalescing {
 public:
  struct Burst {
    std::uint64_t bytes = 0;
    Time at{};                 ///< When it was taken from the source.
    bool drained = true;       ///< No packet was left in the source.
    bool copies_wait = false;  ///< Its payloads may be copied later, as those of datagrams may.
  };

  /// How long to sleep before the next burst; 0: not at all.
  [[nodiscard]] Duration pause() const noexcept { return pause_; }
  void note(const Burst& burst) noexcept;

  static constexpr Duration kThinPause = std::chrono::microseconds(200);
  static constexpr Duration kBulkPause = std::chrono::microseconds(60);

 private:
  static constexpr std::uint32_t kFirstTryAfter = 64;

  /// Moving averages of recent bursts.
  struct Taken {
    double bytes = 0;  ///< Bytes of a burst.
    double ns = 0;     ///< Time since the previous burst.
    void add(std::uint64_t burst_bytes, Duration since) noexcept;
  };

  void judge(std::uint64_t bytes, Duration since) noexcept;
  [[nodiscard]] bool sleeping_gains() const noexcept;

  Time came_at_{};
  Duration pause_{};
  bool sleeping_ = false;
  Taken awake_;
  Taken slept_;
  std::uint32_t bursts_ = 0;                   ///< Bursts since sleeping began or was given up.
  std::uint32_t awake_most_ = kFirstTryAfter;  ///< Bursts before sleeping is tried again.
};

}  // namespace headrace::ingest
