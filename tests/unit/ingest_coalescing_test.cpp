#include "ingest/coalescing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

namespace headrace::ingest::testing {
namespace {

using std::chrono::microseconds;

struct Totals {
  std::uint64_t bytes = 0;
  std::uint64_t bursts = 0;
  std::uint64_t slept = 0;
  Duration took{};
};

/// Takes bursts for `length`. A burst costs 5 us, waits 20 us for packets, and brings what `brings` gives for the time
/// since the last burst.
Totals take(Coalescing& coalescing, Duration length, const std::function<std::uint64_t(Duration)>& brings) {
  Totals run;
  Time now{std::chrono::seconds(1)};
  const Time begin = now;
  while (now - begin < length) {
    const Duration pause = coalescing.pause();
    const Duration since = pause + microseconds(25);
    now += since;
    const std::uint64_t bytes = brings(since);
    coalescing.note({.bytes = bytes, .at = now});
    run.bytes += bytes;
    ++run.bursts;
    run.slept += pause > Duration{} ? 1 : 0;
  }
  run.took = now - begin;
  return run;
}

constexpr auto kNsPerByte = 0.4;  // 20 Gbit/s
std::uint64_t at_line_rate(Duration since) {
  return static_cast<std::uint64_t>(static_cast<double>(since.count()) / kNsPerByte);
}

TEST(IngestCoalescing, ASenderAtLineRateIsRunInLargeBursts) {
  Coalescing coalescing;
  const Totals run = take(coalescing, std::chrono::milliseconds(200), at_line_rate);
  EXPECT_GT(run.slept, run.bursts * 9 / 10);
  EXPECT_GT(run.bytes / run.bursts, 3 * at_line_rate(microseconds(25)));
}

TEST(IngestCoalescing, ASenderThatWaitsForItsWindowIsSlowedDownByLessThan5Percent) {
  constexpr std::uint64_t kWindow = 64 << 10;
  Coalescing coalescing;
  const Totals run = take(coalescing, std::chrono::seconds(1), [](Duration) { return kWindow; });
  const auto without = run.took / microseconds(25) * kWindow;
  EXPECT_GT(run.bytes, without * 95 / 100);
  EXPECT_GT(run.slept, 0U);  // a sleep has been tried
}

TEST(IngestCoalescing, ALargerWindowThatSleepsWouldExhaustIsNotSleptFor) {
  // At line rate, half of this arrives while the receiver sleeps: bursts would grow, and the rate would fall.
  const std::uint64_t window = at_line_rate(microseconds(125)) / 2;
  Coalescing coalescing;
  const Totals run =
      take(coalescing, std::chrono::seconds(1), [&](Duration since) { return std::min(window, at_line_rate(since)); });
  EXPECT_LT(run.slept, run.bursts / 20);
}

TEST(IngestCoalescing, QuestionsAndAnswersAreNeverSleptFor) {
  Coalescing coalescing;
  const Totals run = take(coalescing, std::chrono::seconds(1), [](Duration) { return std::uint64_t{200}; });
  EXPECT_EQ(run.slept, 0U);
}

TEST(IngestCoalescing, NothingIsSleptForWherePacketsWait) {
  Coalescing coalescing;
  for (int i = 0; i < 10'000; ++i) {
    coalescing.note({.bytes = 96 << 10, .at = Time{microseconds(20 * i)}, .drained = false});
    ASSERT_EQ(coalescing.pause(), Duration{});
  }
}

TEST(IngestCoalescing, DatagramsThatComeOneByOneAreRunTogether) {
  Coalescing coalescing;
  coalescing.note({.bytes = 1472, .at = Time{std::chrono::seconds(1)}, .copies_wait = true});
  EXPECT_EQ(coalescing.pause(), Duration{});
  coalescing.note({.bytes = 1472, .at = Time{std::chrono::seconds(1)} + microseconds(10), .copies_wait = true});
  EXPECT_EQ(coalescing.pause(), Coalescing::kThinPause);
  coalescing.note({.at = Time{std::chrono::seconds(1)} + microseconds(300), .copies_wait = true});
  EXPECT_EQ(coalescing.pause(), Duration{});
}

}  // namespace
}  // namespace headrace::ingest::testing
