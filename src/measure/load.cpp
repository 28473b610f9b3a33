#include "headrace/measure/detail/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/measure/detail/generator.hpp"

namespace headrace::measure {

namespace {

constexpr Duration kLatenessMost = std::chrono::microseconds(100);

bool right_and_in_time(const LoadResult& result, Duration p99_bound) {
  return !result.gave_up && result.complete && result.failed == 0 && result.wrong == 0 && result.late == 0 &&
         result.lost == 0 && result.latency.count > 0 && std::max(result.latency.p99, result.p99_offered) <= p99_bound;
}

/// Queries that arrived in the windows but were not answered in them, relative to the number that keeping up allows.
double shortfall(const LoadResult& result) {
  const double seconds = std::chrono::duration<double>(result.measured_for).count();
  const double missing = (result.incoming_per_second - result.measured_per_second) * seconds;
  // The queries in flight at either end of the windows vary by chance, like a Poisson count.
  const double in_flight = result.incoming_per_second * std::chrono::duration<double>(result.latency.mean).count();
  const double allowed = (1 - kKeepsUp) * result.incoming_per_second * seconds + 4 * std::sqrt(in_flight) + 1;
  return missing / allowed;
}

}  // namespace

bool sustains(const LoadResult& result, Duration p99_bound) {
  return right_and_in_time(result, p99_bound) && shortfall(result) <= 1;
}

bool fell_behind(const LoadResult& result, Duration p99_bound) {
  return right_and_in_time(result, p99_bound) && shortfall(result) > 1;
}

std::string why_disturbed(const LoadResult& result) {
  if (!result.complete) return "the generator or the answers fell too far behind to be counted";
  if (result.latency.count > 0 && shortfall(result) < -1) {
    return "more queries were answered than arrived, because the machine had stalled before";
  }
  const Duration late = std::max(kLatenessMost, result.latency.p99 / 2);
  if (result.lateness_p99 > late) {
    const double ms = std::chrono::duration<double, std::milli>(result.lateness_p99).count();
    return ms < 1000 ? fmt::format("the generator was {:.3g} ms late at p99", ms)
                     : fmt::format("the generator was {:.3g} s late at p99", ms / 1000);
  }
  return why_disturbed(result.machine);
}

void validate(const LoadOptions& options) {
  if (options.arrivals == ArrivalKind::trace) {
    if (options.trace.empty()) throw UsageError("a load with trace arrivals needs a trace");
  } else if (!(options.rate_per_second > 0)) {
    throw UsageError(fmt::format("a rate must be above 0 queries/s, not {}", options.rate_per_second));
  }
  if (options.window <= Duration::zero()) throw UsageError("a window must last longer than 0 s");
  if (options.late_limit < Duration::zero()) throw UsageError("late_limit must not be negative");
  if (options.warm_up < Duration::zero()) throw UsageError("a warm-up must not be negative");
  if (!(options.stable_within >= 0)) {
    throw UsageError(fmt::format("stable_within must be 0 or more, not {}", options.stable_within));
  }
  if (options.stable_windows < 1 || options.windows_max < options.stable_windows) {
    throw UsageError(fmt::format("stable_windows must be 1 to windows_max ({}), not {}", options.windows_max,
                                 options.stable_windows));
  }
}

namespace detail {

namespace {

constexpr double kTail = 0.99;

/// The percentile of latencies if `unanswered` further queries are later than any of them.
Duration percentile_with_unanswered(const Latencies& latency, std::uint64_t unanswered, double fraction) {
  const auto count = static_cast<double>(latency.count());
  if (unanswered == 0) return latency.percentile(fraction);
  const double rank = fraction * (count + static_cast<double>(unanswered));
  return rank > count ? Duration::max() : latency.percentile(rank / count);
}

}  // namespace

void throw_lost(std::uint64_t in_flight, Duration waited) {
  throw Exception(Errc::system, fmt::format("{} queries were not answered within {:.1f} s of the end of the load",
                                            in_flight, std::chrono::duration<double>(waited).count()));
}

Arrivals share_of_arrivals(const LoadOptions& options, std::size_t index, std::size_t count) {
  const double rate = options.rate_per_second / static_cast<double>(count);
  if (options.arrivals == ArrivalKind::constant) return Arrivals::constant(rate);
  if (options.arrivals == ArrivalKind::poisson) return Arrivals::poisson(rate, options.seed + index);
  std::vector<Duration> mine;
  for (std::size_t i = index; i < options.trace.size(); i += count) mine.push_back(options.trace[i]);
  if (mine.empty()) throw UsageError("a trace must hold at least one arrival for each generator thread");
  mine.back() = options.trace.back();  // every thread repeats the trace at the same time
  return Arrivals::trace(std::move(mine));
}

LoadResult summarise(std::span<const std::span<const Window>> threads, int end, int count, Duration length) {
  LoadResult result;
  Latencies latency;
  Latencies lateness;
  std::uint64_t scheduled = 0;
  std::uint64_t right = 0;
  for (const auto& windows : threads) {
    for (const Window& window :
         windows.subspan(static_cast<std::size_t>(end - count), static_cast<std::size_t>(count))) {
      latency.append(window.latency);
      lateness.append(window.lateness);
      scheduled += window.scheduled;
      result.refused_counted += window.refused;
      result.unanswered_counted += window.unanswered;
      right += window.right;
    }
  }
  const double seconds = std::chrono::duration<double>(length).count() * count;
  if (count == 0) return result;
  result.measured_for = length * count;
  result.incoming_per_second = static_cast<double>(scheduled) / seconds;
  result.measured_per_second = static_cast<double>(right) / seconds;
  result.latency = latency.summary();
  result.p99_offered = percentile_with_unanswered(latency, result.unanswered_counted, kTail);
  const LatencySummary late = lateness.summary();
  result.lateness_p99 = late.p99;
  result.lateness_max = late.max;
  return result;
}

bool stable(std::span<const std::span<const Window>> threads, int end, const LoadOptions& options) {
  const int count = options.stable_windows;
  if (end < count) return false;
  double least = 0;
  double most = 0;
  double total = 0;
  std::uint64_t samples = 0;
  for (int w = end - count; w < end; ++w) {
    std::uint64_t right = 0;
    for (const auto& windows : threads) right += windows[static_cast<std::size_t>(w)].right;
    const auto rate = static_cast<double>(right);
    least = total == 0 && w == end - count ? rate : std::min(least, rate);
    most = std::max(most, rate);
    total += rate;
    samples += right;
  }
  const double mean = total / count;
  // Poisson arrivals alone make counts with this mean vary by its square root; four times that is rarely exceeded.
  const double chance = options.arrivals == ArrivalKind::poisson ? 4 * std::sqrt(mean) : 0;
  return samples > 0 && samples >= options.samples && most - least <= options.stable_within * mean + chance;
}

}  // namespace detail

}  // namespace headrace::measure
