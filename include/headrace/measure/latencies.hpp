#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/clock.hpp"

namespace headrace::measure {

struct LatencySummary {
  std::uint64_t count = 0;
  Duration mean{};
  Duration p50{};
  Duration p90{};
  Duration p99{};
  Duration p999{};
  Duration max{};
};

/// Every latency of a run, kept so that percentiles are exact. Resolution 1 ns; more than 4.29 s counts as 4.29 s.
class Latencies {
 public:
  void reserve(std::size_t count) { values_.reserve(count); }
  void record(Duration latency) { values_.push_back(clamp(latency)); }
  void append(const Latencies& other) { values_.insert(values_.end(), other.values_.begin(), other.values_.end()); }
  void clear() noexcept { values_.clear(); }
  [[nodiscard]] std::size_t count() const noexcept { return values_.size(); }

  /// The least recorded value that is no smaller than `fraction` of all (nearest rank); zero when nothing is recorded.
  /// 0 < fraction <= 1. Reorders the values.
  [[nodiscard]] Duration percentile(double fraction);
  [[nodiscard]] LatencySummary summary();

 private:
  [[nodiscard]] static std::uint32_t clamp(Duration latency) noexcept {
    constexpr std::int64_t kMost = 0xFFFFFFFF;
    const std::int64_t ns = latency.count();
    return static_cast<std::uint32_t>(ns < 0 ? 0 : (ns > kMost ? kMost : ns));
  }

  std::vector<std::uint32_t> values_;
};

/// How many samples the percentile `fraction` needs so that, with 95% confidence, the measured value is one whose true
/// rank is within `tolerance` of it. The rank of a sample quantile is binomial, so n = f (1 - f) (1.96 / tolerance)^2:
/// 9,508 for 99% within 0.2% (Conover, Practical Nonparametric Statistics, 3.2).
[[nodiscard]] std::uint64_t samples_needed(double fraction, double tolerance = 0.002);

}  // namespace headrace::measure
