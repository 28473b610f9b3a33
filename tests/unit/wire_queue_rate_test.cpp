#include "wire/queue_rate.hpp"

#include <gtest/gtest.h>

#include <chrono>

/// What a line of queries tells of the time that the next ones will take.
namespace headrace::wire {
namespace {

using std::chrono::milliseconds;

/// So many queries come back each millisecond, until `end`.
void run(QueueRate& rate, std::size_t each, Time& now, Time end) {
  for (; now < end; now += milliseconds(1)) rate.add(each, now);
}

TEST(QueueRate, NothingIsKnownAtFirst) {
  QueueRate rate;
  EXPECT_EQ(rate.time_of(1'000'000), Duration{});
  rate.add(5, milliseconds(1000));
  rate.add(5, milliseconds(1001));
  EXPECT_EQ(rate.time_of(1'000'000), Duration{});
}

TEST(QueueRate, TimeIsQueriesOverTheirRate) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 2, now, milliseconds(1200));
  EXPECT_NEAR(static_cast<double>(rate.time_of(1000).count()), 500e6, 100e6);
  EXPECT_NEAR(static_cast<double>(rate.time_of(1).count()), 0.5e6, 0.1e6);
  EXPECT_EQ(rate.time_of(0), Duration{});
}

TEST(QueueRate, FollowsTheRateAndForgetsTheOldOne) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 100, now, milliseconds(1200));
  run(rate, 1, now, milliseconds(1400));
  EXPECT_NEAR(static_cast<double>(rate.time_of(100).count()), 100e6, 20e6);
}

TEST(QueueRate, ATimeInWhichNothingWaitedDoesNotCount) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 10, now, milliseconds(1200));
  rate.pause();
  now = milliseconds(60'000);
  run(rate, 10, now, milliseconds(60'100));
  EXPECT_NEAR(static_cast<double>(rate.time_of(100).count()), 10e6, 2e6);
}

TEST(QueueRate, AnEngineThatStandsStillTakesLongAndNotForever) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 10, now, milliseconds(1100));
  run(rate, 0, now, milliseconds(1400));
  EXPECT_GT(rate.time_of(100), std::chrono::seconds(1));
  EXPECT_LE(rate.time_of(UINT64_MAX), std::chrono::seconds(1'000'000'000));
}

}  // namespace
}  // namespace headrace::wire
