#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::serve::detail {

/// A client's account of the queries that it gives up at their deadlines. They come back at once; their slots stay
/// taken until the worker or the device is done with them, which neither hears of it.
///
/// Positions of a lane: below freed() slots may be used again; from there to `taken` queries have come back, and some
/// are still worked on; `taken` is the oldest that has not come back, and behind it ahead() have.
///
/// A lane has settled(position): whether nobody uses the slot any more; deadline(position); give_up(position), and
/// given_up(position) until the slot is used again.
class LateQueries {
 public:
  /// A query is submitted.
  void watch(Time deadline) noexcept {
    if (deadline < soonest_) soonest_ = deadline;
  }
  /// Whether queries may be late. The clock is read only while there are deadlines.
  [[nodiscard]] bool due() const noexcept { return soonest_ != Time::max() && SteadyClock::now() > soonest_; }
  /// No query in flight has an earlier deadline. It may be that of one which has come back.
  [[nodiscard]] Time soonest() const noexcept { return soonest_; }
  /// Whether slots of queries that were given up are taken.
  [[nodiscard]] bool keeps() const noexcept { return kept_ != 0; }
  [[nodiscard]] std::uint64_t ahead() const noexcept { return ahead_; }
  [[nodiscard]] std::uint64_t freed(std::uint64_t taken) const noexcept { return keeps() ? freed_ : taken; }

  /// Gives up queries in [taken, next) that are late, at most `most`, each after `tell(position)`, which may submit
  /// others; how many.
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

  /// Moves `taken` over queries that have come back before it, and frees slots as far as nobody uses them.
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
  Time soonest_ = Time::max();  ///< No query in flight has an earlier deadline.
  std::uint64_t kept_ = 0;
  std::uint64_t ahead_ = 0;
  std::uint64_t freed_ = 0;  ///< While kept_ is not 0.
};

}  // namespace headrace::serve::detail
