#include "wire/queue_rate.hpp"

#include <gtest/gtest.h>

#include <chrono>

/// Returned queries predict how long the next ones will take.
namespace headrace::wire {
namespace {

using std::chrono::milliseconds;

/// `each` of `in_flight` queries come back each millisecond until `end`.
void run(QueueRate& rate, std::size_t each, std::size_t in_flight, Time& now, Time end) {
  for (; now < end; now += milliseconds(1)) rate.add(each, in_flight, now);
}

double milliseconds_of(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

TEST(QueueRate, NothingIsKnownAtFirst) {
  QueueRate rate;
  EXPECT_EQ(rate.time_of(1000, 1'000'000), Duration{});
  rate.add(5, 10, milliseconds(1000));
  rate.add(5, 10, milliseconds(1001));
  EXPECT_EQ(rate.time_of(1000, 1'000'000), Duration{});
}

TEST(QueueRate, TimeIsWhatIsBeforeAQueryOverTheRate) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 2, 100, now, milliseconds(1200));
  EXPECT_NEAR(milliseconds_of(rate.time_of(100, 1000)), 550, 110);
  EXPECT_NEAR(milliseconds_of(rate.time_of(100, 0)), 50, 10);
  EXPECT_NEAR(milliseconds_of(rate.time_of(10, 0)), 5, 1);
  EXPECT_EQ(rate.time_of(0, 0), Duration{});
}

TEST(QueueRate, MoreInFlightThanWasSeenMayBeWorkedOnSideBySide) {
  QueueRate rate;
  Time now = milliseconds(1000);
  // Queries run one after the other and take 10 ms each.
  for (int i = 0; i < 100; ++i, now += milliseconds(10)) rate.add(1, 1, now);
  EXPECT_NEAR(milliseconds_of(rate.time_of(1, 0)), 10, 2);
  EXPECT_NEAR(milliseconds_of(rate.time_of(500, 0)), 10, 2);
}

TEST(QueueRate, FollowsTheRateAndForgetsTheOldOne) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 100, 200, now, milliseconds(1200));
  run(rate, 1, 200, now, milliseconds(1400));
  EXPECT_NEAR(milliseconds_of(rate.time_of(100, 0)), 100, 20);
}

TEST(QueueRate, ATimeInWhichNothingWasInFlightDoesNotCount) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 10, 100, now, milliseconds(1200));
  rate.pause(now);
  now = milliseconds(60'000);
  run(rate, 10, 100, now, milliseconds(60'100));
  EXPECT_NEAR(milliseconds_of(rate.time_of(100, 0)), 10, 2);
}

TEST(QueueRate, OnePauseAmongShortQueriesIsNoRate) {
  QueueRate rate;
  Time now = milliseconds(1000);
  const auto ask = [&](Duration each, std::size_t in_flight) {
    rate.begin(now);
    for (std::size_t left = in_flight; left > 0; --left) {
      now += each;
      rate.add(1, left, now);
    }
    rate.pause(now);
    now += milliseconds(1);
  };
  ask(milliseconds(8), 1);  // the first query of all
  EXPECT_GT(milliseconds_of(rate.time_of(1, 0)), 7);
  for (int i = 0; i < 2000; ++i) ask(std::chrono::microseconds(50), 1);
  EXPECT_LT(milliseconds_of(rate.time_of(1, 0)), 0.2);
}

TEST(QueueRate, AnEngineThatStandsStillTakesLongAndNotForever) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 10, 100, now, milliseconds(1100));
  run(rate, 0, 100, now, milliseconds(1400));
  EXPECT_GT(rate.time_of(100, 0), std::chrono::seconds(1));
  EXPECT_LE(rate.time_of(100, UINT64_MAX), std::chrono::seconds(100'000'000));
}

TEST(QueueRate, APauseIsAsLongAsItIsHoweverOftenOneLooks) {
  QueueRate rate;
  Time now = milliseconds(1000);
  run(rate, 10, 100, now, milliseconds(1100));
  run(rate, 0, 100, now, milliseconds(3100));
  EXPECT_NEAR(milliseconds_of(rate.time_of(1, 0)), 2000, 50);
  run(rate, 10, 100, now, milliseconds(3300));
  EXPECT_NEAR(milliseconds_of(rate.time_of(100, 0)), 10, 2);
}

}  // namespace
}  // namespace headrace::wire
