#pragma once

#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/latencies.hpp"

namespace headrace::measure::detail {

/// One generator thread's figures of one window. All but `right` cover the queries that were scheduled in the window,
/// however late they were offered and answered. Otherwise a stalled thread would lose the queries that suffered most.
struct Window {
  std::uint64_t scheduled = 0;
  std::uint64_t refused = 0;
  std::uint64_t unanswered = 0;  ///< Unanswered, including refused ones.
  std::uint64_t pending = 0;     ///< Admitted and not answered yet.
  std::uint64_t right = 0;       ///< Correct answers that came back within the window.
  Latencies latency;
  Latencies lateness;
};

/// Finds the window that contains a time. Fast for consecutive times, which mostly share a window.
class WindowCursor {
 public:
  WindowCursor(Time first, Duration length) : first_(first), length_(length), begin_(first) {}

  /// The index of the window; negative before the first.
  [[nodiscard]] std::int64_t find(Time time) noexcept {
    if (time >= begin_ && time < begin_ + length_) return index_;
    if (time < first_) return -1;
    index_ = (time - first_) / length_;
    begin_ = first_ + index_ * length_;
    return index_;
  }

 private:
  Time first_;
  Duration length_;
  Time begin_;
  std::int64_t index_ = 0;
};

}  // namespace headrace::measure::detail
