#pragma once

#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/latencies.hpp"

namespace headrace::measure::detail {

/// What one generator thread saw of one window. All but `right` is about the queries that were scheduled in it, however
/// late they were offered and answered: a thread that stood still would otherwise lose the queries that suffered most.
struct Window {
  std::uint64_t scheduled = 0;
  std::uint64_t refused = 0;
  std::uint64_t unanswered = 0;  ///< Got no answer, the refused as well.
  std::uint64_t pending = 0;     ///< Admitted and not answered yet.
  std::uint64_t right = 0;       ///< Right answers that came back within it.
  Latencies latency;
  Latencies lateness;
};

/// Finds the window that a time falls in. Times that follow each other are mostly in the same.
class WindowCursor {
 public:
  WindowCursor(Time first, Duration length) : first_(first), length_(length), begin_(first) {}

  /// Below 0 before the first.
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
