#include "headrace/measure/detail/latencies.hpp"

#include <algorithm>
#include <cmath>

namespace headrace::measure {

void Latencies::append(const Latencies& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  total_ns_ += other.total_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

std::uint64_t Latencies::last_of(std::size_t bucket) noexcept {
  if (bucket < kExact) return bucket;
  const std::size_t shift = (bucket >> kStepsLog2) - 1;
  const std::uint64_t step = bucket - (shift << kStepsLog2);
  return ((step + 1) << shift) - 1;
}

Duration Latencies::percentile(double fraction) const noexcept {
  if (count_ == 0) return {};
  const auto rank = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  std::uint64_t below = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < kBuckets && below + counts_[bucket] < std::max<std::uint64_t>(rank, 1))
    below += counts_[bucket++];
  return Duration{static_cast<std::int64_t>(std::min<std::uint64_t>(last_of(bucket), max_ns_))};
}

LatencySummary Latencies::summary() const noexcept {
  LatencySummary summary;
  summary.count = count_;
  if (count_ == 0) return summary;
  summary.mean = Duration{static_cast<std::int64_t>(total_ns_ / count_)};
  summary.p50 = percentile(0.50);
  summary.p90 = percentile(0.90);
  summary.p99 = percentile(0.99);
  summary.p999 = percentile(0.999);
  summary.max = Duration{static_cast<std::int64_t>(max_ns_)};
  return summary;
}

std::uint64_t samples_needed(double fraction, double tolerance) {
  constexpr double kNormal95 = 1.96;
  const double ratio = kNormal95 / tolerance;
  return static_cast<std::uint64_t>(std::ceil(fraction * (1 - fraction) * ratio * ratio));
}

}  // namespace headrace::measure
