#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "headrace/measure/detail/load.hpp"

namespace headrace::measure {

/// Tries per rate. A shared machine can stall for milliseconds at any time, so one bad try says little.
inline constexpr int kTriesPerRate = 3;

struct SearchOptions {
  double start_per_second = 0;    ///< Where to begin, e.g. the closed loop's rate. Above 0.
  double most_per_second = 1e12;  ///< Never try above this, e.g. the generator's ceiling.
  double least_per_second = 1;    ///< Give up below this.
  double resolution = 0.03;       ///< Stop when the highest good and the lowest bad rate differ by this share.
  int tries = kTriesPerRate;      ///< A rate is bad after this many bad tries in a row, or twice as many if disturbed.
  int probes_max = 48;
  std::stop_token stop{};
};

/// The highest rate that was sustained, and its figures.
struct SearchResult {
  std::optional<LoadResult> best;  ///< Empty if no rate was sustained.
  LoadResult last_failure;         ///< At the lowest rate that was not sustained; all zeros if every rate was.
  int probes = 0;
  bool interrupted = false;
};

/// Finds the highest incoming rate that `probe` sustains within `p99_bound`: down by halves (or up by 1.5) from the
/// start until one rate is good and one is bad, then bisection. Finally it tries the lowest bad rate again, so that a
/// momentary stall of the machine does not decide the result. A hopeless try ends early (LoadOptions::give_up_count).
[[nodiscard]] SearchResult search_highest_rate(const std::function<LoadResult(double rate_per_second)>& probe,
                                               Duration p99_bound, const SearchOptions& options);

}  // namespace headrace::measure
