#include "headrace/measure/latencies.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::measure {

Duration Latencies::percentile(double fraction) {
  if (values_.empty()) return {};
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values_.size())));
  const auto at = values_.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, values_.size()) - 1);
  std::nth_element(values_.begin(), at, values_.end());
  return Duration{*at};
}

LatencySummary Latencies::summary() {
  LatencySummary summary;
  summary.count = values_.size();
  if (values_.empty()) return summary;
  const auto total = std::accumulate(values_.begin(), values_.end(), std::uint64_t{0});
  summary.mean = Duration{static_cast<std::int64_t>(total / values_.size())};
  summary.p50 = percentile(0.50);
  summary.p90 = percentile(0.90);
  summary.p99 = percentile(0.99);
  summary.p999 = percentile(0.999);
  summary.max = Duration{*std::max_element(values_.begin(), values_.end())};
  return summary;
}

std::uint64_t samples_needed(double fraction, double tolerance) {
  constexpr double kNormal95 = 1.96;
  const double ratio = kNormal95 / tolerance;
  return static_cast<std::uint64_t>(std::ceil(fraction * (1 - fraction) * ratio * ratio));
}

}  // namespace headrace::measure
