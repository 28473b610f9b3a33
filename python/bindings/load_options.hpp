#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "convert.hpp"
#include "headrace/base/error.hpp"
#include "headrace/measure/detail/load.hpp"
#include "interrupt.hpp"

namespace headrace::python {

/// Called after each window with its number, answers per second and p99 in seconds.
using WindowCallback = std::function<void(int, double, double)>;

/// The options of every load from Python, with times in seconds.
inline measure::LoadOptions load_options(std::optional<double> rate, std::string_view arrivals, std::uint64_t seed,
                                         const std::vector<double>& trace, double warm_up, double window,
                                         int windows_max, int stable_windows, double stable_within,
                                         std::uint64_t samples) {
  measure::LoadOptions options;
  options.arrivals = measure::parse_arrival_kind(arrivals);
  if (options.arrivals != measure::ArrivalKind::trace && !rate) throw UsageError("a load needs a rate, in queries/s");
  options.rate_per_second = rate.value_or(0);
  options.seed = seed;
  for (const double at : trace) options.trace.push_back(to_duration("an arrival of the trace", at));
  options.warm_up = to_duration("warm_up", warm_up);
  options.window = to_duration("window", window);
  options.windows_max = windows_max;
  options.stable_windows = stable_windows;
  options.stable_within = stable_within;
  options.samples = samples;
  return options;
}

/// Ends the load when `interruptible` is stopped, and calls `to`, which must outlive it, after each window.
inline void report_to(measure::LoadOptions& options, const Interruptible& interruptible, const WindowCallback& to) {
  options.stop = interruptible.token();
  if (!to) return;
  options.progress = [&to](int window, double measured, Duration p99) { to(window, measured, to_seconds(p99)); };
}

}  // namespace headrace::python
