#include "headrace/measure/detail/latencies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace headrace::measure {
namespace {

using std::chrono::seconds;

Latencies of(const std::vector<int>& values) {
  Latencies latencies;
  for (const int value : values) latencies.record(Duration{value});
  return latencies;
}

TEST(Latencies, NearestRankOfAHundred) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 1);
  std::shuffle(values.begin(), values.end(), std::mt19937(1));
  Latencies latencies = of(values);
  EXPECT_EQ(latencies.percentile(0.50).count(), 50);
  EXPECT_EQ(latencies.percentile(0.99).count(), 99);
  EXPECT_EQ(latencies.percentile(0.991).count(), 100);
  EXPECT_EQ(latencies.percentile(1.0).count(), 100);
  EXPECT_EQ(latencies.percentile(0.001).count(), 1);
}

TEST(Latencies, EqualsSortingForRandomValues) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int> values(1 + random() % 500);
    for (int& value : values) value = static_cast<int>(random() % 1000);
    Latencies latencies = of(values);
    std::ranges::sort(values);
    for (const double fraction : {0.1, 0.5, 0.9, 0.99, 0.999}) {
      const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
      EXPECT_EQ(latencies.percentile(fraction).count(), values[rank - 1]);
    }
  }
}

TEST(Latencies, LargeValuesAreRightToAThousandth) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<std::uint32_t> values(1 + random() % 2000);
    Latencies latencies;
    for (std::uint32_t& value : values) {
      value = static_cast<std::uint32_t>(random()) >> (random() % 32);
      latencies.record(Duration{value});
    }
    std::ranges::sort(values);
    for (const double fraction : {0.01, 0.5, 0.9, 0.99, 1.0}) {
      const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
      const double exact = values[rank - 1];
      const auto measured = static_cast<double>(latencies.percentile(fraction).count());
      EXPECT_GE(measured, exact);
      EXPECT_LE(measured, exact * 1.001);
    }
    EXPECT_EQ(latencies.summary().max.count(), values.back());
    EXPECT_EQ(latencies.summary().mean.count(), std::accumulate(values.begin(), values.end(), std::int64_t{0}) /
                                                    static_cast<std::int64_t>(values.size()));
  }
}

TEST(Latencies, OneValueIsEveryPercentile) {
  const LatencySummary summary = of({42}).summary();
  EXPECT_EQ(summary.count, 1U);
  for (const Duration value : {summary.mean, summary.p50, summary.p90, summary.p99, summary.p999, summary.max}) {
    EXPECT_EQ(value.count(), 42);
  }
}

TEST(Latencies, NothingRecordedIsZero) {
  const LatencySummary summary = Latencies().summary();
  EXPECT_EQ(summary.count, 0U);
  EXPECT_EQ(summary.p99.count(), 0);
}

TEST(Latencies, SaturatesRatherThanWraps) {
  Latencies latencies;
  latencies.record(seconds(3600));
  latencies.record(Duration{-5});
  EXPECT_EQ(latencies.percentile(1.0).count(), (std::int64_t{1} << 40) - 1);
  EXPECT_EQ(latencies.percentile(0.5).count(), 0);
}

TEST(Latencies, AppendKeepsBoth) {
  Latencies latencies = of({1, 2});
  latencies.append(of({3}));
  EXPECT_EQ(latencies.count(), 3U);
  EXPECT_EQ(latencies.percentile(1.0).count(), 3);
}

TEST(SamplesNeeded, FollowsTheBinomial) {
  EXPECT_EQ(samples_needed(0.99), 9508U);
  EXPECT_EQ(samples_needed(0.99, 0.001), 38032U);
  EXPECT_GT(samples_needed(0.5), samples_needed(0.99));
}

}  // namespace
}  // namespace headrace::measure
