#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"

namespace headrace::wire {

/// Whether an engine worked on a query that came back with this status.
[[nodiscard]] inline bool was_served(const Status& status) noexcept {
  return status.ok() || (status.error().code != Errc::deadline_exceeded && status.error().code != Errc::cancelled);
}

/// Measures how many queries come back per second, and how many are in flight, to estimate how long new queries must
/// wait. By Little's law, a query takes the number in flight divided by the rate. Used by one thread.
///
/// An engine with little to do answers at the rate of the arrivals, which says nothing about what it could answer. The
/// rate is therefore kept with the number in flight at which it was measured. Fewer in flight lower neither, except
/// slowly.
///
/// Time in which nothing is in flight does not count, and measurements continue after it. Else only long busy times,
/// such as those with a pause of the engine, would be measured where there is little to do.
class QueueRate {
 public:
  /// A query goes to an engine that may have had none.
  void begin(Time now) noexcept {
    if (since_ == Time{}) since_ = now;
  }
  /// `back` queries have come back by `now`, out of `in_flight` that the engine had. Only queries that it worked on
  /// count in `back`, see was_served().
  void add(std::size_t back, std::size_t in_flight, Time now) noexcept {
    begin(now);
    back_ += back;
    in_flight_ += in_flight;
    ++looks_;
    const Duration elapsed = busy_ + (now - since_);
    if (elapsed < kWindow) return;
    const double seconds = std::chrono::duration<double>(elapsed).count();
    if (back_ == 0) {  // the engine stands still, perhaps for its pool to restart: less than one query in all this time
      still_per_second_ = 1 / seconds;
      return;
    }
    learn(static_cast<double>(back_) / seconds, static_cast<double>(in_flight_) / static_cast<double>(looks_));
    busy_ = {};
    back_ = 0;
    in_flight_ = 0;
    looks_ = 0;
    still_per_second_ = kUnknown;
    since_ = now;
  }
  /// Nothing is in flight any more. Keeps the measured rate.
  void pause(Time now) noexcept {
    if (since_ != Time{}) busy_ += now - since_;
    since_ = {};
    still_per_second_ = kUnknown;
  }
  /// Expected time until a query comes back that the engine gets after `in_line` others, while it has `in_flight`; 0 if
  /// nothing is known. Queries in flight beyond `stretch` times the number at which the rate was measured do not count,
  /// because the engine may process them in parallel.
  [[nodiscard]] Duration time_of(std::size_t in_flight, std::uint64_t in_line, double stretch = 1) const noexcept {
    if (per_second_ == 0) return {};
    const double before = std::min(static_cast<double>(in_flight), stretch * together_) + static_cast<double>(in_line);
    constexpr double kLongest = 1e8;  // seconds: three years
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::min(before / std::min(per_second_, still_per_second_), kLongest)));
  }

 private:
  static constexpr Duration kWindow = std::chrono::milliseconds(5);
  static constexpr double kNew = 0.3;         ///< Weight of a new measurement.
  static constexpr double kAsMany = 0.8;      ///< This fraction of `together_` in flight tells as much about the rate.
  static constexpr double kFades = 1 - 1e-4;  ///< In a window with fewer; after ten seconds, a fifth is forgotten.
  static constexpr double kUnknown = 1e300;

  void learn(double per_second, double together) noexcept {
    if (per_second_ == 0) {
      per_second_ = per_second;
      together_ = together;
    } else if (per_second > per_second_ || together >= kAsMany * together_) {
      per_second_ += kNew * (per_second - per_second_);
      together_ += kNew * (together - together_);
    } else {
      per_second_ *= kFades;
      together_ *= kFades;
    }
  }

  Time since_{};     ///< When the engine last became busy, or the last window ended; Time{} while it has nothing.
  Duration busy_{};  ///< Time of the window in which it was busy, until then.
  std::size_t back_ = 0;
  std::size_t in_flight_ = 0;  ///< Sum over all calls of add() in the window.
  std::size_t looks_ = 0;
  double per_second_ = 0;
  double together_ = 0;                 ///< Mean number of queries in flight while `per_second_` came back.
  double still_per_second_ = kUnknown;  ///< Bound on the present rate while no query comes back.
};

}  // namespace headrace::wire
