#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// Measures how many queries come back per second, and how many are in flight, to estimate how long new queries must
/// wait. By Little's law, a query takes the number in flight divided by the rate. Used by one thread.
class QueueRate {
 public:
  /// `back` queries have come back by `now`, out of `in_flight` that the engine had.
  void add(std::size_t back, std::size_t in_flight, Time now) noexcept {
    if (since_ == Time{}) since_ = now;
    back_ += back;
    in_flight_ += in_flight;
    ++looks_;
    const Duration elapsed = now - since_;
    if (elapsed < kWindow) return;
    const double seconds = std::chrono::duration<double>(elapsed).count();
    if (back_ == 0) {  // the engine stands still, perhaps for its pool to restart: less than one query in all this time
      per_second_ = std::min(per_second_, 1 / seconds);
      return;
    }
    const double rate = static_cast<double>(back_) / seconds;
    const double together = static_cast<double>(in_flight_) / static_cast<double>(looks_);
    const double kept = per_second_ == 0 ? 0 : kKept;
    per_second_ = kept * per_second_ + (1 - kept) * rate;
    together_ = kept * together_ + (1 - kept) * together;
    pause();
    since_ = now;
  }
  /// Nothing is in flight any more. Keeps the measured rate.
  void pause() noexcept {
    since_ = {};
    back_ = 0;
    in_flight_ = 0;
    looks_ = 0;
  }
  /// Expected time until a query comes back that the engine gets after `in_line` others, while it has `in_flight`; 0 if
  /// nothing is known. Queries in flight beyond the mean number so far do not count, because the engine may process
  /// them in parallel.
  [[nodiscard]] Duration time_of(std::size_t in_flight, std::uint64_t in_line) const noexcept {
    if (per_second_ == 0) return {};
    const double before = std::min(static_cast<double>(in_flight), together_) + static_cast<double>(in_line);
    constexpr double kLongest = 1e8;  // seconds: three years
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::min(before / per_second_, kLongest)));
  }

 private:
  static constexpr Duration kWindow = std::chrono::milliseconds(5);
  static constexpr double kKept = 0.7;  ///< Weight of the previous estimate at the end of each window.

  Time since_{};
  std::size_t back_ = 0;
  std::size_t in_flight_ = 0;  ///< Sum over all calls of add() in the window.
  std::size_t looks_ = 0;
  double per_second_ = 0;
  double together_ = 0;  ///< Mean number of queries in flight.
};

}  // namespace headrace::wire
