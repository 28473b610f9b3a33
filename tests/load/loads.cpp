#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <string>
#include <thread>

#include "headrace/measure/detail/generator.hpp"
#include "headrace/measure/detail/search.hpp"

namespace headrace::measure {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A system of one server that works on one query at a time, for `service` each, by the machine's clock.
class OneServer {
 public:
  explicit OneServer(Duration service, std::size_t capacity = 1 << 20) : service_(service), capacity_(capacity) {}

  bool submit(Time scheduled) {
    if (queue_.size() == capacity_) return false;
    const Time begins = std::max(SteadyClock::now(), free_at_);
    free_at_ = begins + service_;
    queue_.push_back({scheduled, free_at_});
    return true;
  }

  template <class Done>
  std::size_t poll(Done&& done) {
    std::size_t count = 0;
    for (; count < kPollMax && !queue_.empty() && queue_.front().ready <= SteadyClock::now(); ++count) {
      done(queue_.front().scheduled, outcome);
      queue_.pop_front();
    }
    answered += count;
    return count;
  }

  Outcome outcome = Outcome::right;
  std::size_t answered = 0;

 private:
  struct Item {
    Time scheduled;
    Time ready;
  };
  Duration service_;
  std::size_t capacity_;
  Time free_at_{};
  std::deque<Item> queue_;
};

/// A system that never answers its first query.
struct Black {
  bool submit(Time) { return taken ? false : (taken = true); }
  template <class Done>
  std::size_t poll(Done&&) {
    return 0;
  }
  bool taken = false;
};

LoadOptions quick(double rate) {
  LoadOptions options;
  options.rate_per_second = rate;
  options.warm_up = milliseconds(5);
  options.window = milliseconds(20);
  return options;
}

/// Windows much longer than the pauses of a shared machine, for tests that need a figure.
LoadOptions steady(double rate) {
  LoadOptions options = quick(rate);
  options.window = milliseconds(200);
  return options;
}

template <class Target>
LoadResult open(std::vector<Target> targets, const LoadOptions& options) {
  return open_loop<Target>(targets, options);
}

TEST(OpenLoop, AFastSystemKeepsUp) {
  const LoadResult result = open<OneServer>({OneServer(microseconds(1))}, steady(20'000));
  EXPECT_NEAR(result.incoming_per_second, 20'000, 6'000);
  EXPECT_NEAR(result.measured_per_second, 20'000, 6'000);
  EXPECT_GE(result.latency.p50, microseconds(1));
  EXPECT_EQ(result.refused + result.failed + result.wrong, 0U);
  EXPECT_GT(result.answered, 0U);
  EXPECT_GE(result.windows, 3);
}

// A server at twice its capacity falls behind by half of the elapsed time. The latency must show this, although the
// server needs only 100 us for each query. A generator that waits for answers would hide it.
TEST(OpenLoop, OverloadShowsInTheLatency) {
  LoadOptions options = quick(20'000);
  options.windows_max = 4;
  const LoadResult result = open<OneServer>({OneServer(microseconds(100))}, options);
  EXPECT_LT(result.measured_per_second, 0.7 * result.incoming_per_second);
  EXPECT_GT(result.latency.p99, milliseconds(5));
  EXPECT_FALSE(sustains(result, milliseconds(100)));
}

/// A fast server in a process that stalls once, for a given time, when a given query is offered.
class StandsStill : public OneServer {
 public:
  StandsStill(Duration stall, std::size_t at) : OneServer(microseconds(1)), stall_(stall), left_(at) {}

  bool submit(Time scheduled) {
    if (left_-- == 0) std::this_thread::sleep_for(stall_);
    return OneServer::submit(scheduled);
  }

 private:
  Duration stall_;
  std::size_t left_;
};

// A stall delays rate * stall of N arrivals at a constant rate, by the whole stall down to nothing: 1% of N exceed p99.
TEST(OpenLoop, AStallOfAnyLengthLosesNoArrivalAndNoLateness) {
  constexpr double kRate = 5'000;
  for (const Duration stall : {milliseconds(200), milliseconds(500), milliseconds(1000), milliseconds(3000)}) {
    LoadOptions options = quick(kRate);
    options.arrivals = ArrivalKind::constant;
    options.window = milliseconds(100);
    options.windows_max = 20;
    options.stable_windows = 20;
    std::vector<StandsStill> targets{StandsStill(stall, 5'000)};
    const LoadResult result = open_loop<StandsStill>(targets, options);
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.windows, 20);
    EXPECT_NEAR(result.incoming_per_second, kRate, 0.01 * kRate);
    EXPECT_EQ(result.latency.count, std::lround(result.incoming_per_second * 2));
    // The stall begins after one second, so it delays at most the rest of the load.
    const double stalled = std::chrono::duration<double>(std::min<Duration>(stall, milliseconds(1000))).count();
    const double exceeding = 0.01 * 2 * kRate;
    const double p99 = std::chrono::duration<double>(stall).count() - std::min(exceeding / kRate, stalled);
    const auto seconds = [](Duration duration) { return std::chrono::duration<double>(duration).count(); };
    EXPECT_NEAR(seconds(result.latency.p99), p99, 0.05 * p99 + 0.02);
    EXPECT_NEAR(seconds(result.lateness_max), seconds(stall), 0.05 * seconds(stall) + 0.02);
    EXPECT_NEAR(seconds(result.latency.max), seconds(stall), 0.05 * seconds(stall) + 0.02);
  }
}

TEST(OpenLoop, WhatComesBehindTheLimitIsSaidToBeMissing) {
  LoadOptions options = quick(5'000);
  options.late_limit = milliseconds(50);
  std::vector<StandsStill> targets{StandsStill(milliseconds(400), 100)};
  const LoadResult result = open_loop<StandsStill>(targets, options);
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.stable);
  EXPECT_FALSE(sustains(result, std::chrono::seconds(10)));
  EXPECT_FALSE(why_disturbed(result).empty());
}

TEST(OpenLoop, IsNeverStableWithRefusals) {
  LoadOptions options = quick(2'000);
  options.stable_within = 10;
  const LoadResult result = open<OneServer>({OneServer(milliseconds(1), 4)}, options);
  EXPECT_GT(result.refused, 0U);
  EXPECT_FALSE(result.stable);
}

TEST(OpenLoop, GivesUpOnceEnoughAnswersAreLate) {
  LoadOptions options = quick(20'000);
  options.give_up_latency = milliseconds(1);
  options.give_up_count = 20;
  options.window = milliseconds(60'000);
  const LoadResult result = open<OneServer>({OneServer(microseconds(100))}, options);
  EXPECT_TRUE(result.gave_up);
  EXPECT_EQ(result.windows, 1);
  EXPECT_GE(result.latency.count, 20U);
  EXPECT_LT(result.latency.count, 2'000U);
  EXPECT_FALSE(sustains(result, std::chrono::seconds(10)));
}

TEST(OpenLoop, GivesUpByTheLateAnswersOfAllGenerators) {
  LoadOptions options = quick(40'000);
  options.give_up_latency = milliseconds(1);
  options.window = milliseconds(400);
  options.windows_max = 3;
  options.stable_within = 1e-9;
  options.give_up_count = 12'500;  // one server answers 12,000 in that time, and some before
  std::vector<OneServer> targets{OneServer(microseconds(100)), OneServer(microseconds(100))};
  EXPECT_TRUE(open_loop<OneServer>(targets, options).gave_up);
}

TEST(OpenLoop, CountsWhatIsRefused) {
  const LoadResult result = open<OneServer>({OneServer(milliseconds(1), 4)}, quick(20'000));
  EXPECT_GT(result.refused, 100U);
  EXPECT_FALSE(sustains(result, milliseconds(1000)));
}

TEST(OpenLoop, CountsWrongAndFailedAnswersButNotTheirLatency) {
  for (const Outcome outcome : {Outcome::wrong, Outcome::failed}) {
    std::vector<OneServer> targets{OneServer(microseconds(1))};
    targets[0].outcome = outcome;
    LoadOptions options = quick(20'000);
    options.windows_max = 3;
    const LoadResult result = open_loop<OneServer>(targets, options);
    EXPECT_EQ(result.answered, result.wrong + result.failed);
    EXPECT_GT(outcome == Outcome::wrong ? result.wrong : result.failed, 0U);
    EXPECT_EQ(result.latency.count, 0U);
    EXPECT_FALSE(sustains(result, milliseconds(1000)));
  }
}

/// A server that ends each query in a different way and learns that the load ends.
class EndsDifferently : public OneServer {
 public:
  EndsDifferently() : OneServer(microseconds(1)) {}
  template <class Done>
  std::size_t poll(Done&& done) {
    return OneServer::poll(
        [&](Time scheduled, Outcome) { done(scheduled, static_cast<Outcome>(next_++ % kOutcomes)); });
  }
  void finish(bool stopped) {
    EXPECT_FALSE(stopped);
    ++finished;
  }
  int finished = 0;

 private:
  std::size_t next_ = 0;
};

TEST(OpenLoop, TellsApartHowQueriesEndThatGotNoAnswer) {
  std::vector<EndsDifferently> targets(1);
  LoadOptions options = quick(20'000);
  options.windows_max = 3;
  const LoadResult result = open_loop<EndsDifferently>(targets, options);
  const std::uint64_t rounds = targets[0].answered / kOutcomes;
  EXPECT_GT(rounds, 10U);
  for (const std::uint64_t count :
       {result.wrong, result.failed, result.refused, result.late, result.lost, result.unsent}) {
    EXPECT_GE(count, rounds);
    EXPECT_LE(count, rounds + 1);
  }
  EXPECT_EQ(targets[0].answered - result.answered, result.refused + result.late + result.lost + result.unsent);
  EXPECT_EQ(result.refusal.count, result.refused);
  EXPECT_EQ(result.p99_offered, Duration::max());
  EXPECT_NEAR(static_cast<double>(result.unanswered_counted), 6.0 * static_cast<double>(result.latency.count), 12);
  EXPECT_NEAR(static_cast<double>(result.refused_counted), static_cast<double>(result.latency.count), 2);
  EXPECT_FALSE(result.stable);
  EXPECT_FALSE(sustains(result, std::chrono::seconds(10)));
  EXPECT_EQ(targets[0].finished, 1);
}

/// A system that rests for as long as it is allowed to.
struct Rests : OneServer {
  Rests() : OneServer(microseconds(1)) {}
  void rest(Time until) {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(until));
    ++rests;
  }
  int rests = 0;
};

TEST(OpenLoop, ATargetThatRestsMissesNoArrival) {
  std::vector<Rests> targets(1);
  const LoadResult result = open_loop<Rests>(targets, steady(1'000));
  EXPECT_NEAR(result.incoming_per_second, 1'000, 300);
  EXPECT_EQ(result.refused + result.failed + result.wrong, 0U);
  EXPECT_GT(targets[0].rests, 100);
}

TEST(OpenLoop, SeveralGeneratorsShareTheRate) {
  const LoadResult result = open<OneServer>({OneServer(microseconds(1)), OneServer(microseconds(1))}, steady(20'000));
  EXPECT_NEAR(result.incoming_per_second, 20'000, 6'000);
}

TEST(OpenLoop, StopsWhenAsked) {
  std::stop_source stop;
  LoadOptions options = quick(10'000);
  options.stable_within = 1e-9;
  options.windows_max = 1000;
  options.stop = stop.get_token();
  options.progress = [&](int window, double, Duration) {
    if (window == 3) stop.request_stop();
  };
  const LoadResult result = open<OneServer>({OneServer(microseconds(1))}, options);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.windows, 10);
}

TEST(OpenLoop, RefusesOptionsThatMeanNothing) {
  const auto refused = [](auto change) {
    LoadOptions options = quick(1000);
    change(options);
    EXPECT_THROW(static_cast<void>(open<OneServer>({OneServer(microseconds(1))}, options)), UsageError);
  };
  refused([](LoadOptions& o) { o.rate_per_second = 0; });
  refused([](LoadOptions& o) { o.rate_per_second = -5; });
  refused([](LoadOptions& o) { o.window = Duration::zero(); });
  refused([](LoadOptions& o) { o.warm_up = milliseconds(-1); });
  refused([](LoadOptions& o) { o.stable_windows = 0; });
  refused([](LoadOptions& o) { o.windows_max = 2; });
  refused([](LoadOptions& o) { o.arrivals = ArrivalKind::trace; });
}

// The rate is the number of answers divided by the time taken, which is at least the requested duration.
TEST(ClosedLoop, RateIsAnswersOverTime) {
  constexpr Duration kDuration = milliseconds(100);
  std::vector<OneServer> targets{OneServer(microseconds(200))};
  const Time start = SteadyClock::now();
  const double rate = closed_loop<OneServer>(targets, 4, kDuration);
  const double longest = std::chrono::duration<double>(SteadyClock::now() - start).count();
  const double shortest = std::chrono::duration<double>(kDuration).count();
  const auto answered = static_cast<double>(targets[0].answered);
  EXPECT_GT(answered, 4);
  EXPECT_LE(rate, answered / shortest);
  EXPECT_GE(rate, answered / longest);
  EXPECT_LE(rate, 5'000 * 1.05);  // one server of 200 us
}

/// Results of a system that sustains at most `capacity`.
LoadResult simulated(double rate, double capacity) {
  LoadResult result;
  result.measured_for = milliseconds(300);
  result.incoming_per_second = rate;
  result.measured_per_second = std::min(rate, capacity);
  result.latency.count = 10'000;
  result.latency.p99 = rate <= capacity ? microseconds(100) : milliseconds(100);
  return result;
}

TEST(Sustains, AllowsAChanceDifferenceOfWhatIsInFlight) {
  LoadResult result = simulated(10'000, 10'000);  // 3,000 arrivals, 30 of them may be missing; 4 in flight on average
  result.latency.mean = microseconds(400);
  result.measured_per_second = (3'000 - 30 - 8) / 0.3;
  EXPECT_TRUE(sustains(result, milliseconds(1)));
  result.measured_per_second = (3'000 - 30 - 10) / 0.3;
  EXPECT_FALSE(sustains(result, milliseconds(1)));
}

TEST(Sustains, FallingBehindIsToldFromBeingLateAndFromBeingWrong) {
  LoadResult result = simulated(10'000, 10'000);
  EXPECT_FALSE(fell_behind(result, milliseconds(1)));
  result.measured_per_second = 5'000;
  EXPECT_FALSE(sustains(result, milliseconds(1)));
  EXPECT_TRUE(fell_behind(result, milliseconds(1)));
  EXPECT_FALSE(fell_behind(result, microseconds(99)));
  result.wrong = 1;
  EXPECT_FALSE(fell_behind(result, milliseconds(1)));
}

TEST(Sustains, CountsTheRefusedAsLate) {
  LoadResult result = simulated(10'000, 10'000);
  EXPECT_TRUE(sustains(result, milliseconds(1)));
  result.p99_offered = Duration::max();
  EXPECT_FALSE(sustains(result, milliseconds(1)));
}

TEST(WhyDisturbed, NamesWhatWasAnsweredOfAnEarlierTime) {
  LoadResult result = simulated(10'000, 10'000);
  EXPECT_EQ(why_disturbed(result), "");
  result.measured_per_second = 10'500;
  EXPECT_NE(why_disturbed(result).find("more queries were answered than arrived"), std::string::npos);
}

TEST(WhyDisturbed, NamesWhatOtherProgramsAndTheHypervisorTook) {
  LoadResult result = simulated(10'000, 10'000);
  EXPECT_EQ(why_disturbed(result), "");
  result.machine.others = 0.4;
  EXPECT_EQ(why_disturbed(result), "other programs took 40% of the processors' time");
  result.machine = {.steal = 0.1};
  EXPECT_EQ(why_disturbed(result), "the hypervisor took 10% of the processors' time");
  result.machine = {};
  result.lateness_p99 = milliseconds(37);
  EXPECT_EQ(why_disturbed(result), "the generator was 37 ms late at p99");
}

// If the machine stalls while a rate is tried, the rate looks bad, whatever the system can do.
TEST(Search, OneBadMomentDoesNotDecide) {
  for (const int first : {0, 3, 6, 9}) {
    int tries = 0;
    const auto found = search_highest_rate(
        [&](double rate) {
          LoadResult result = simulated(rate, 400'000);
          const bool still = tries >= first && tries < first + 2 * kTriesPerRate;
          ++tries;
          if (still) result.latency.p99 = milliseconds(80);
          return result;
        },
        milliseconds(1), {.start_per_second = 280'000, .probes_max = 120});
    ASSERT_TRUE(found.best);
    EXPECT_GE(found.best->measured_per_second, 0.96 * 400'000) << first;
  }
}

TEST(Search, ATryOnADisturbedMachineCountsForLess) {
  int tries = 0;
  const auto found = search_highest_rate(
      [&](double rate) {
        LoadResult result = simulated(rate, 1e9);
        if (++tries > 2 * kTriesPerRate - 1) return result;
        result.latency.p99 = milliseconds(80);
        result.machine.others = 0.5;
        return result;
      },
      milliseconds(1), {.start_per_second = 1000, .most_per_second = 1000});
  ASSERT_TRUE(found.best);
  EXPECT_EQ(tries, 2 * kTriesPerRate);
}

TEST(Search, FindsTheCapacityFromBelowAndFromAbove) {
  for (const double capacity : {1'000.0, 33'333.0, 2e6}) {
    for (const double start : {0.1 * capacity, capacity, 7 * capacity}) {
      const auto found = search_highest_rate([&](double rate) { return simulated(rate, capacity); }, milliseconds(1),
                                             {.start_per_second = start, .probes_max = 120});
      ASSERT_TRUE(found.best);
      EXPECT_LE(found.best->measured_per_second, capacity);
      EXPECT_GE(found.best->measured_per_second, 0.97 * capacity) << capacity << " from " << start;
    }
  }
}

TEST(Search, NeverGoesBeyondTheMost) {
  double highest = 0;
  const auto found = search_highest_rate(
      [&](double rate) {
        highest = std::max(highest, rate);
        return simulated(rate, 1e9);
      },
      milliseconds(1), {.start_per_second = 1000, .most_per_second = 50'000});
  ASSERT_TRUE(found.best);
  EXPECT_DOUBLE_EQ(highest, 50'000);
  EXPECT_DOUBLE_EQ(found.best->incoming_per_second, 50'000);
}

TEST(Search, SaysWhenNoRateIsGood) {
  const auto found = search_highest_rate([](double rate) { return simulated(rate, 0); }, milliseconds(1),
                                         {.start_per_second = 1000, .least_per_second = 10});
  EXPECT_FALSE(found.best);
  EXPECT_GT(found.last_failure.incoming_per_second, 0);
}

TEST(Search, TriesABadRateAgain) {
  int tries = 0;
  const auto found = search_highest_rate(
      [&](double rate) {
        LoadResult result = simulated(rate, 1e9);
        if (++tries < kTriesPerRate) result.latency.p99 = microseconds(1500);
        return result;
      },
      milliseconds(1), {.start_per_second = 1000, .most_per_second = 1000});
  ASSERT_TRUE(found.best);
  EXPECT_EQ(tries, kTriesPerRate);
}

TEST(Search, TriesARateAsOftenAsAsked) {
  for (const int most : {1, 7}) {
    int tries = 0;
    const auto found = search_highest_rate(
        [&](double rate) {
          ++tries;
          return simulated(rate, 0);
        },
        milliseconds(1), {.start_per_second = 1000, .least_per_second = 1000, .tries = most});
    EXPECT_FALSE(found.best);
    EXPECT_EQ(tries, most);
  }
}

TEST(Search, RefusesAStartOrBoundOfZero) {
  const auto probe = [](double rate) { return simulated(rate, 1); };
  EXPECT_THROW(static_cast<void>(search_highest_rate(probe, milliseconds(1), {.start_per_second = 0})), UsageError);
  EXPECT_THROW(static_cast<void>(search_highest_rate(probe, Duration::zero(), {.start_per_second = 1})), UsageError);
}

TEST(Summarise, TakesTheLastWindowsOfEveryThread) {
  std::vector<detail::Window> a(3);
  std::vector<detail::Window> b(3);
  for (std::size_t w = 0; w < 3; ++w) {
    for (auto* windows : {&a, &b}) {
      (*windows)[w].scheduled = 20 * (w + 1);
      (*windows)[w].right = 10 * (w + 1);
      (*windows)[w].latency.record(microseconds(static_cast<int>(w)));
    }
  }
  const std::vector<std::span<const detail::Window>> threads{a, b};
  const LoadResult result = detail::summarise(threads, 3, 2, milliseconds(100));
  EXPECT_DOUBLE_EQ(result.incoming_per_second, (40 + 60) * 2 / 0.2);
  EXPECT_DOUBLE_EQ(result.measured_per_second, (20 + 30) * 2 / 0.2);
  EXPECT_EQ(result.latency.count, 4U);
  EXPECT_EQ(result.latency.p50, microseconds(1));
}

TEST(Summarise, PutsRefusedQueriesBehindAllAnswers) {
  std::vector<detail::Window> windows(1);
  for (int i = 1; i <= 1000; ++i) windows[0].latency.record(microseconds(i));
  const std::vector<std::span<const detail::Window>> threads{windows};
  const auto p99 = [&](std::uint64_t refused) {
    windows[0].refused = windows[0].unanswered = refused;
    return detail::summarise(threads, 1, 1, milliseconds(100)).p99_offered;
  };
  EXPECT_NEAR(static_cast<double>(p99(0).count()), 990e3, 2e3);
  EXPECT_NEAR(static_cast<double>(p99(5).count()), 995e3, 2e3);
  EXPECT_EQ(p99(11), Duration::max());
}

TEST(Stable, NeedsWindowsWithinTheShareAndTheSamples) {
  std::vector<detail::Window> windows(4);
  const std::uint64_t counts[] = {70, 100, 102, 104};
  for (std::size_t w = 0; w < 4; ++w) windows[w].right = counts[w];
  const std::vector<std::span<const detail::Window>> threads{windows};
  LoadOptions options;
  EXPECT_TRUE(detail::stable(threads, 3, options));  // 32 of 90 may be chance
  options.arrivals = ArrivalKind::constant;
  EXPECT_FALSE(detail::stable(threads, 2, options));
  EXPECT_FALSE(detail::stable(threads, 3, options));
  EXPECT_TRUE(detail::stable(threads, 4, options));
  options.samples = 306;
  EXPECT_TRUE(detail::stable(threads, 4, options));
  options.samples = 307;
  EXPECT_FALSE(detail::stable(threads, 4, options));
}

}  // namespace
}  // namespace headrace::measure
