#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// How many queries come back a second while others wait in line: what those that come next will have to wait for.
/// Used by one thread.
class QueueRate {
 public:
  /// `count` queries have come back by `now`, and more wait in line.
  void add(std::size_t count, Time now) noexcept {
    if (since_ == Time{}) since_ = now;
    count_ += count;
    const Duration elapsed = now - since_;
    if (elapsed < kWindow) return;
    const double found = static_cast<double>(count_) / seconds(elapsed);
    per_second_ = per_second_ == 0 ? found : kKept * per_second_ + (1 - kKept) * found;
    since_ = now;
    count_ = 0;
  }
  /// Nothing waits any more. What has been found stays, for the next time.
  void pause() noexcept {
    since_ = {};
    count_ = 0;
  }
  /// When the last of so many queries will have come back, as far as is known: 0 where nothing is.
  [[nodiscard]] Duration time_of(std::uint64_t queries) const noexcept {
    if (per_second_ == 0) return {};
    const double time = static_cast<double>(queries) / per_second_;
    constexpr double kLongest = 1e9;  // seconds
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time < kLongest ? time : kLongest));
  }

 private:
  static constexpr Duration kWindow = std::chrono::milliseconds(5);
  static constexpr double kKept = 0.7;  ///< The share of what was found before, at the end of each window.

  [[nodiscard]] static double seconds(Duration duration) noexcept {
    return std::chrono::duration<double>(duration).count();
  }

  Time since_{};
  std::size_t count_ = 0;
  double per_second_ = 0;
};

}  // namespace headrace::wire
