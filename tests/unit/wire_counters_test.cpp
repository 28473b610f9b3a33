#include "wire/counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

/// Counters of one thread of a server.
namespace headrace::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Index of the bucket that contains a duration.
std::size_t bucket_of(Duration duration) {
  DurationCounts counts;
  counts.add(duration);
  DurationHistogram found;
  counts.add_to(found);
  EXPECT_EQ(found.count(), 1U);
  EXPECT_EQ(found.sum, duration);
  for (std::size_t i = 0; i < found.counts.size(); ++i) {
    if (found.counts[i] == 1) return i;
  }
  return found.counts.size();
}

TEST(DurationCounts, BoundsAreOneTwoAndFiveOfEachPowerOfTen) {
  constexpr auto& kBounds = DurationHistogram::kBounds;
  EXPECT_EQ(kBounds[0], microseconds(1));
  EXPECT_EQ(kBounds[1], microseconds(2));
  EXPECT_EQ(kBounds[2], microseconds(5));
  EXPECT_EQ(kBounds[3], microseconds(10));
  EXPECT_EQ(kBounds[20], seconds(5));
  EXPECT_EQ(kBounds.back(), seconds(10));
}

TEST(DurationCounts, ABoundIsTheLastOfItsBucket) {
  EXPECT_EQ(bucket_of(Duration::zero()), 0U);
  for (std::size_t i = 0; i < DurationHistogram::kBounds.size(); ++i) {
    EXPECT_EQ(bucket_of(DurationHistogram::kBounds[i]), i);
    EXPECT_EQ(bucket_of(DurationHistogram::kBounds[i] + nanoseconds(1)), i + 1);
  }
  EXPECT_EQ(bucket_of(std::chrono::hours(1)), DurationHistogram::kBounds.size());
}

TEST(ProtocolCounters, EveryRequestHasOneOutcomeAndThreadsAddUp) {
  ProtocolCounters first;
  ProtocolCounters second;
  first.add(RequestOutcome::answered, 3, microseconds(4));
  first.add(RequestOutcome::late, 2, microseconds(7));
  second.add(RequestOutcome::answered, 5, microseconds(1));
  second.add(RequestOutcome::cancelled, 1, microseconds(2));
  second.add_unread(RequestOutcome::invalid);
  ProtocolStatistics sum;
  first.add_to(sum);
  second.add_to(sum);
  EXPECT_EQ(sum.requests.answered, 2U);
  EXPECT_EQ(sum.requests.late, 1U);
  EXPECT_EQ(sum.requests.cancelled, 1U);
  EXPECT_EQ(sum.requests.invalid, 1U);
  EXPECT_EQ(sum.requests.total(), 5U);
  EXPECT_EQ(sum.queries.answered, 8U);
  EXPECT_EQ(sum.queries.total(), 11U);
  EXPECT_EQ(sum.durations.sum, microseconds(5));
  EXPECT_EQ(sum.durations.counts[0], 1U);
  EXPECT_EQ(sum.durations.counts[2], 1U);
  EXPECT_EQ(sum.unanswered, microseconds(9));
}

TEST(DurationHistogram, FindsTheBucketOfEveryDuration) {
  const auto& bounds = DurationHistogram::kBounds;
  const auto by_search = [&](Duration duration) {
    return static_cast<std::size_t>(std::ranges::lower_bound(bounds, duration) - bounds.begin());
  };
  for (const Duration bound : bounds) {
    for (const int more : {-1, 0, 1}) {
      const Duration duration = bound + nanoseconds(more);
      EXPECT_EQ(DurationHistogram::bucket_of(duration), by_search(duration)) << duration.count();
    }
  }
  for (Duration duration(1); duration < std::chrono::hours(1); duration = duration * 21 / 20 + Duration(1)) {
    ASSERT_EQ(DurationHistogram::bucket_of(duration), by_search(duration)) << duration.count();
  }
  EXPECT_EQ(DurationHistogram::bucket_of(Duration(0)), 0U);
  EXPECT_EQ(DurationHistogram::bucket_of(Duration(-5)), 0U);
  EXPECT_EQ(DurationHistogram::bucket_of(Duration::max()), bounds.size());
}

TEST(ProtocolCounters, CountStagesApart) {
  ProtocolCounters counters;
  counters.add_stages({.read = microseconds(1), .queue = microseconds(20), .engine = microseconds(3), .reply = {}});
  counters.add_stages({.read = microseconds(1), .queue = microseconds(50), .engine = microseconds(4), .reply = {}});
  ProtocolStatistics sum;
  counters.add_to(sum);
  EXPECT_EQ(sum.stages.read.sum, microseconds(2));
  EXPECT_EQ(sum.stages.queue.sum, microseconds(70));
  EXPECT_EQ(sum.stages.engine.sum, microseconds(7));
  EXPECT_EQ(sum.stages.reply.counts[0], 2U);
  EXPECT_EQ(sum.stages.queue.counts[DurationHistogram::bucket_of(microseconds(50))], 1U);
  EXPECT_EQ(sum.durations.count(), 0U);
}

TEST(ProtocolCounters, WhoReadsMeanwhileSeesTheHistogramAndTheCountAgree) {
  constexpr std::uint64_t kRequests = 100'000;
  ProtocolCounters counters;
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < kRequests; ++i) counters.add(RequestOutcome::answered, 1, nanoseconds(i));
  });
  std::uint64_t before = 0;
  while (before < kRequests) {
    ProtocolStatistics now;
    counters.add_to(now);
    ASSERT_EQ(now.requests.answered, now.durations.count());
    ASSERT_GE(now.durations.count(), before);
    before = now.durations.count();
  }
}

}  // namespace
}  // namespace headrace::wire
