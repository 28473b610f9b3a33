#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::serve::detail {

/// Tracks the queries that a client gives up at their deadlines. They come back at once. Their slots stay taken until
/// the worker or the device is done with them; neither is notified.
///
/// Positions of a lane: slots below freed() may be reused. Queries from there to `taken` have come back, but some are
/// still worked on. `taken` is the oldest query that has not come back; ahead() queries after it have.
///
/// A lane has settled(position), which tells whether the slot is no longer in use; deadline(position);
/// give_up(position); and given_up(position), which holds until the slot is reused.
class LateQueries {
 public:
  /// Called when a query is submitted.
  void watch(Time deadline) noexcept {
    if (deadline < soonest_) soonest_ = deadline;
  }
  /// Whether queries may be late. Reads the clock only while there are deadlines.
  [[nodiscard]] bool due() const noexcept { return soonest_ != Time::max() && SteadyClock::now() > soonest_; }
  /// A lower bound on the deadlines of queries in flight. It may belong to a query that has come back.
  [[nodiscard]] Time soonest() const noexcept { return soonest_; }
  /// Whether slots of given-up queries are taken.
  [[nodiscard]] bool keeps() const noexcept { return kept_ != 0; }
  [[nodiscard]] std::uint64_t ahead() const noexcept { return ahead_; }
  [[nodiscard]] std::uint64_t freed(std::uint64_t taken) const noexcept { return keeps() ? freed_ : taken; }

  /// Gives up at most `most` late queries in [taken, next), each after `tell(position)`, which may submit others.
  /// Returns how many.
  template <class Lane, class Tell>
  std::size_t give_up(Lane& lane, std::uint64_t& taken, const std::uint64_t& next, std::size_t most, Tell tell) {
    const Time now = SteadyClock::now();
    Time soonest = Time::max();
    std::size_t count = 0;
    std::uint64_t position = taken;
    for (; position != next && count < most; ++position) {
      if (lane.given_up(position) || lane.settled(position)) continue;
      const Time deadline = lane.deadline(position);
      if (deadline >= now) {
        soonest = std::min(soonest, deadline);
        continue;
      }
      tell(position);
      lane.give_up(position);
      if (kept_++ == 0) freed_ = taken;
      ++ahead_;
      ++count;
      catch_up(lane, taken, next);
    }
    if (position == next) soonest_ = soonest;
    return count;
  }

  /// Moves `taken` past queries that have already come back, and frees slots that are no longer in use.
  template <class Lane>
  void catch_up(const Lane& lane, std::uint64_t& taken, std::uint64_t next) noexcept {
    while (taken != next && lane.given_up(taken)) {
      ++taken;
      --ahead_;
    }
    while (kept_ != 0 && freed_ != taken && lane.settled(freed_)) {
      if (lane.given_up(freed_)) --kept_;
      ++freed_;
    }
  }

 private:
  Time soonest_ = Time::max();  ///< A lower bound on the deadlines of queries in flight.
  std::uint64_t kept_ = 0;
  std::uint64_t ahead_ = 0;
  std::uint64_t freed_ = 0;  ///< Valid while kept_ is not 0.
};

}  // namespace headrace::serve::detail
