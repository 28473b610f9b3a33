#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/detail/clock.hpp"

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

/// The distribution of latencies in constant memory: a histogram with 1 ns steps below 2,048 ns and 1,024 steps per
/// octave above, so that a percentile is exact to 0.1% (after Tene's HdrHistogram). Mean and maximum are exact.
/// Resolution 1 ns; more than 18 minutes counts as 18 minutes.
///
/// Recording touches one counter. At tens of millions of answers a second, lists of latencies would cost the generator
/// memory bandwidth, and sorting them would cost a processor.
class Latencies {
 public:
  void record(Duration latency) noexcept {
    const std::uint64_t ns = clamp(latency);
    ++counts_[bucket(ns)];
    ++count_;
    total_ns_ += ns;
    max_ns_ = ns > max_ns_ ? ns : max_ns_;
  }
  void append(const Latencies& other) noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  /// The least recorded value that is at least as large as `fraction` of all (nearest rank), to 0.1%; zero if nothing
  /// is recorded. 0 < fraction <= 1.
  [[nodiscard]] Duration percentile(double fraction) const noexcept;
  [[nodiscard]] LatencySummary summary() const noexcept;

 private:
  static constexpr std::uint32_t kStepsLog2 = 10;  ///< Steps per octave.
  static constexpr std::uint32_t kBits = 40;       ///< Bits of the greatest latency in ns.
  static constexpr std::uint64_t kExact = 2U << kStepsLog2;
  static constexpr std::size_t kBuckets = kExact + (std::size_t{kBits - 1 - kStepsLog2} << kStepsLog2);

  [[nodiscard]] static std::uint64_t clamp(Duration latency) noexcept {
    constexpr std::int64_t kMost = (std::int64_t{1} << kBits) - 1;
    const std::int64_t ns = latency.count();
    return static_cast<std::uint64_t>(ns < 0 ? 0 : (ns > kMost ? kMost : ns));
  }
  [[nodiscard]] static std::size_t bucket(std::uint64_t ns) noexcept {
    if (ns < kExact) return ns;
    const auto shift = static_cast<std::size_t>(std::bit_width(ns)) - (kStepsLog2 + 1);
    return (shift << kStepsLog2) + (ns >> shift);
  }
  /// The greatest value of a bucket.
  [[nodiscard]] static std::uint64_t last_of(std::size_t bucket) noexcept;

  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(kBuckets);
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

/// Number of samples that the percentile `fraction` needs so that, with 95% confidence, the true rank of the measured
/// value is within `tolerance` of it. The rank of a sample quantile is binomial, so n = f (1 - f) (1.96 / tolerance)^2:
/// 9,508 for 99% within 0.2% (Conover, Practical Nonparametric Statistics, 3.2).
[[nodiscard]] std::uint64_t samples_needed(double fraction, double tolerance = 0.002);

}  // namespace headrace::measure
