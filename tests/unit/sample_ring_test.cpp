#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "serve/worker_counters.hpp"

namespace headrace::serve::detail {
namespace {

/// A sample whose fields all follow from one number, so that a torn read shows.
StageSample numbered(std::int64_t number) {
  return {.submitted = Time{number},
          .queue = Duration{number + 1},
          .host = Duration{number + 2},
          .copy_in = Duration{number + 3},
          .kernel = Duration{number + 4},
          .copy_out = Duration{number + 5},
          .whole = Duration{number + 6}};
}

void expect_whole(const StageSample& sample) {
  const std::int64_t number = sample.submitted.count();
  EXPECT_EQ(sample.queue.count(), number + 1);
  EXPECT_EQ(sample.host.count(), number + 2);
  EXPECT_EQ(sample.copy_in.count(), number + 3);
  EXPECT_EQ(sample.kernel.count(), number + 4);
  EXPECT_EQ(sample.copy_out.count(), number + 5);
  EXPECT_EQ(sample.whole.count(), number + 6);
}

TEST(SampleRing, KeepsTheLastSamples) {
  SampleRing ring;
  std::vector<StageSample> samples;
  ring.read(samples);
  EXPECT_TRUE(samples.empty());
  ring.push(numbered(0));
  ring.read(samples);
  ASSERT_EQ(samples.size(), 1U);
  constexpr std::int64_t kCount = 100;
  for (std::int64_t i = 1; i < kCount; ++i) ring.push(numbered(i));
  samples.clear();
  ring.read(samples);
  ASSERT_EQ(samples.size(), SampleRing::kEntries);
  for (const StageSample& sample : samples) {
    expect_whole(sample);
    EXPECT_GE(sample.submitted.count(), kCount - static_cast<std::int64_t>(SampleRing::kEntries));
  }
}

TEST(SampleRing, ReadersNeverSeeHalfASample) {
  SampleRing ring;
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    for (std::int64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) ring.push(numbered(10 * i));
  });
  std::size_t seen = 0;
  while (seen < 20000) {
    std::vector<StageSample> samples;
    ring.read(samples);
    seen += samples.size();
    for (const StageSample& sample : samples) expect_whole(sample);
    if (::testing::Test::HasFailure()) break;
  }
  stop.store(true, std::memory_order_relaxed);
}

TEST(RecordSample, AddsToTheSumsAndToTheLast) {
  WorkerCounters counters;
  record_sample(counters, numbered(10));
  record_sample(counters, numbered(20));
  EXPECT_EQ(counters.samples.load(), 2U);
  EXPECT_EQ(counters.queue_ns.load(), 32);
  EXPECT_EQ(counters.host_ns.load(), 34);
  EXPECT_EQ(counters.copy_in_ns.load(), 36);
  EXPECT_EQ(counters.kernel_ns.load(), 38);
  EXPECT_EQ(counters.copy_out_ns.load(), 40);
  std::vector<StageSample> samples;
  counters.recent.read(samples);
  EXPECT_EQ(samples.size(), 2U);
}

}  // namespace
}  // namespace headrace::serve::detail
