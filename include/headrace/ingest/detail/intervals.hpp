#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/wire.hpp"

namespace headrace::ingest {

/// Bytes of a stream, from `begin` up to before `end`.
struct Interval {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Which bytes of a stream are accepted: all below next(), and a bounded number of intervals above it, sorted, neither
/// overlapping nor touching.
class Intervals {
 public:
  static constexpr std::uint32_t kMax = 128;

  [[nodiscard]] HEADRACE_HD std::uint64_t next() const { return next_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t count() const { return count_; }
  [[nodiscard]] HEADRACE_HD const Interval& operator[](std::uint32_t i) const { return intervals_[i]; }
  /// The end of the last accepted byte.
  [[nodiscard]] HEADRACE_HD std::uint64_t highest() const { return count_ == 0 ? next_ : intervals_[count_ - 1].end; }

  /// The interval that holds the byte at `offset`; kMax if there is none.
  [[nodiscard]] HEADRACE_HD std::uint32_t find(std::uint64_t offset) const {
    const std::uint32_t i = first_ending_from(offset + 1);
    return i < count_ && intervals_[i].begin <= offset ? i : kMax;
  }

  /// The first contiguous accepted bytes from `begin` up to before `end`; empty if there are none.
  [[nodiscard]] HEADRACE_HD Interval first_accepted(std::uint64_t begin, std::uint64_t end) const {
    if (begin < next_) return {begin, lesser(end, next_)};
    const std::uint32_t i = first_ending_from(begin + 1);
    if (i == count_ || intervals_[i].begin >= end) return {0, 0};
    return {greater(begin, intervals_[i].begin), lesser(end, intervals_[i].end)};
  }

  struct Accepted {
    std::uint64_t bytes = 0;  ///< New bytes.
    std::uint64_t end = 0;    ///< Nothing from here on was accepted.
  };

  /// Accepts the new bytes from `begin` up to before `end`, and calls take(begin, end) for each range of them, in
  /// order. `take` returns false if it cannot take the range. That range and everything after it are not accepted, nor
  /// are bytes that would need more than kMax intervals.
  template <class Take>
  HEADRACE_HD Accepted accept(std::uint64_t begin, std::uint64_t end, const Take& take) {
    std::uint64_t at = greater(begin, next_);
    std::uint64_t taken = 0;
    bool going_on = true;
    if (at < end && at == next_) going_on = extend_next(at, end, taken, take);
    while (going_on && at < end) going_on = fill(at, end, taken, take);  // each call reaches the end or closes a gap
    return {taken, at};
  }

 private:
  /// Accepts bytes from next() up to `end`, and merges the intervals that it reaches.
  template <class Take>
  HEADRACE_HD bool extend_next(std::uint64_t& at, std::uint64_t end, std::uint64_t& taken, const Take& take) {
    std::uint32_t reached = 0;
    bool going_on = true;
    while (next_ < end) {
      const std::uint64_t stop = reached < count_ ? lesser(end, intervals_[reached].begin) : end;
      going_on = take(next_, stop);
      if (!going_on) break;
      taken += stop - next_;
      next_ = stop;
      if (reached < count_ && intervals_[reached].begin == next_) next_ = intervals_[reached++].end;
    }
    if (reached > 0) remove(0, reached);
    at = next_;
    return going_on;
  }

  /// Accepts the bytes of the first gap in at..end, beyond next().
  template <class Take>
  HEADRACE_HD bool fill(std::uint64_t& at, std::uint64_t end, std::uint64_t& taken, const Take& take) {
    const std::uint32_t i = first_ending_from(at);  // one that ends at `at` is extended
    const bool touches = i < count_ && intervals_[i].begin <= at;
    const std::uint32_t above = touches ? i + 1 : i;
    const std::uint64_t from = touches ? intervals_[i].end : at;
    if (from >= end) {
      at = end;
      return true;
    }
    const std::uint64_t stop = above < count_ ? lesser(end, intervals_[above].begin) : end;
    const bool joins = above < count_ && intervals_[above].begin == stop;
    if (!touches && !joins && count_ == kMax) return false;
    if (!take(from, stop)) return false;
    taken += stop - from;
    if (touches && joins) {
      intervals_[i].end = intervals_[above].end;
      remove(above, 1);
    } else if (touches) {
      intervals_[i].end = stop;
    } else if (joins) {
      intervals_[above].begin = from;
    } else {
      insert(i, {from, stop});
    }
    at = stop;
    return true;
  }

  /// The first interval whose end is not before `offset`.
  [[nodiscard]] HEADRACE_HD std::uint32_t first_ending_from(std::uint64_t offset) const {
    std::uint32_t low = 0;
    std::uint32_t high = count_;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (intervals_[middle].end < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  HEADRACE_HD void remove(std::uint32_t from, std::uint32_t how_many) {
    for (std::uint32_t i = from + how_many; i < count_; ++i) intervals_[i - how_many] = intervals_[i];
    count_ -= how_many;
  }
  HEADRACE_HD void insert(std::uint32_t at, const Interval& interval) {
    for (std::uint32_t i = count_; i > at; --i) intervals_[i] = intervals_[i - 1];
    intervals_[at] = interval;
    ++count_;
  }

  std::uint64_t next_ = 0;
  std::uint32_t count_ = 0;
  Interval intervals_[kMax];
};

}  // namespace headrace::ingest
