#include "headrace/serve/tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/base/error.hpp"
#include "serve/tuner_search.hpp"

namespace headrace::serve::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

CandidateLimits sixteen() {
  return {.processors = 16, .generators = 1, .resident = 64, .bound = std::chrono::microseconds(500)};
}

/// A simulated machine: a formula gives its rates, and its clock advances with each trial.
class TunerSearchTest : public ::testing::Test {
 protected:
  /// Highest near `threads` and `streams`; drops by a tenth for each doubling away from them.
  static double hill(const Plan& plan, double threads, double streams, double top) {
    const double away =
        std::abs(std::log2(plan.threads / threads)) + std::abs(std::log2(plan.streams_per_thread / streams));
    return top * std::max(0.05, 1 - 0.1 * away);
  }

  double rate(const Candidate& candidate) const {
    const Plan& plan = candidate.plan;
    switch (plan.schedule) {
      case Schedule::blocking: return hill(plan, 8, 1, 2e5);
      case Schedule::pipelined: return hill(plan, 4, 8, 6e5) * (plan.batch_max == 8 ? 1.3 : 1);
      case Schedule::async: return hill(plan, 2, 16, 5e5);
      case Schedule::persistent: return hill(plan, 4, 16, 1e6) * (plan.slots == 256 ? 1.05 : 1);
      default: throw UsageError("is not built");
    }
  }

  TunerProbe probe() {
    return {.capacity =
                [this](const Candidate& candidate, Duration length) {
                  now += length + milliseconds(20);
                  // A closed loop measures about the rate, off by a share that depends on the plan.
                  const double off = 1 + 0.05 * ((candidate.plan.threads * 7 + candidate.plan.streams_per_thread) % 3);
                  return 1.2 * off * rate(candidate);
                },
            .search =
                [this](const Candidate& candidate, double start, double least) {
                  TrialResult result;
                  const double highest = busy_share * rate(candidate);
                  const bool found = highest >= least && bound_can_be_kept;
                  lowest_tried = std::min(lowest_tried, least);
                  result.fell_behind = !found && bound_can_be_kept;
                  now += found && start > least ? seconds(4) : milliseconds(700);
                  if (!found) result.failure = ": p99 was 9 ms";
                  if (found) {
                    result.load.emplace();
                    result.load->measured_per_second = highest;
                  }
                  return result;
                },
            .now = [this] { return now; }};
  }

  TunerSearch make(std::vector<Schedule> schedules = {}, Duration budget = seconds(60)) {
    const Held held{.blocks = 32, .block_threads = 128, .resident_blocks = 2048, .groups_matter = true};
    return {tuning_grids(schedules, sixteen(), held),
            sixteen(),
            probe(),
            {.shortest = milliseconds(10), .budget = budget, .stop = stop.get_token()}};
  }

  Time now{};
  bool bound_can_be_kept = true;
  double busy_share = 1;  ///< Share of the highest rate that other users of the machine leave.
  double lowest_tried = 1e12;
  std::stop_source stop;
};

TEST_F(TunerSearchTest, EndsNearTheBestOfAnExhaustiveSweepInATenthOfItsTime) {
  TunerSearch sweep = make();
  const auto best = sweep.exhaustive();
  const Duration whole = now;
  now = {};
  TunerSearch search = make();
  const auto found = search.coarse_to_fine();
  ASSERT_TRUE(best && found);
  EXPECT_GE(found->result.load->measured_per_second, 0.9 * best->result.load->measured_per_second);
  EXPECT_LE(now.count(), 0.1 * static_cast<double>(whole.count()));
  EXPECT_LT(search.searched(), search.space() / 4);
  EXPECT_EQ(sweep.looked_at(), sweep.space());
}

TEST_F(TunerSearchTest, ClimbsToAPeakThatTheCoarseGridDoesNotHold) {
  TunerSearch search = make({Schedule::pipelined});
  const auto found = search.coarse_to_fine();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->candidate.plan.threads, 4U);
  EXPECT_EQ(found->candidate.plan.streams_per_thread, 8U);
  EXPECT_EQ(found->candidate.plan.batch_max, 8U);
}

TEST_F(TunerSearchTest, RefusedPlansAreLeftOutAndTheReasonIsKept) {
  TunerSearch mixed = make({Schedule::blocking, Schedule::graph, Schedule::dispatched});
  const auto found = mixed.coarse_to_fine();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->candidate.plan.schedule, Schedule::blocking);
  TunerSearch none = make({Schedule::dispatched});
  EXPECT_FALSE(none.coarse_to_fine());
  EXPECT_EQ(none.refusal(), "is not built");
  EXPECT_EQ(none.searched(), 0U);
}

TEST_F(TunerSearchTest, SaysWhatTheLastRateDidWhereNoneHolds) {
  bound_can_be_kept = false;
  TunerSearch search = make({Schedule::blocking});
  EXPECT_FALSE(search.coarse_to_fine());
  EXPECT_EQ(search.failure(), ": p99 was 9 ms");
}

// A busy machine answers in time, but each of its pauses leaves a queue at the end of a window, at every high rate.
TEST_F(TunerSearchTest, GoesFurtherDownWhereThePlanOnlyFallsBehind) {
  for (const double share : {0.9, 1.0 / 100, 1.0 / 1000}) {
    busy_share = share;
    TunerSearch search = make({Schedule::blocking});
    const auto found = search.coarse_to_fine();
    ASSERT_TRUE(found) << share;
    EXPECT_GT(found->result.load->measured_per_second, 0);
  }
  busy_share = 1e-9;
  TunerSearch none = make({Schedule::blocking});
  EXPECT_FALSE(none.coarse_to_fine());
  EXPECT_FALSE(none.failure().empty());
}

TEST_F(TunerSearchTest, WhatIsLateAtALowRateIsNotLookedAtFurtherDown) {
  bound_can_be_kept = false;
  TunerSearch late = make({Schedule::blocking});
  static_cast<void>(late.coarse_to_fine());
  const double lowest = lowest_tried;
  bound_can_be_kept = true;
  busy_share = 1e-9;
  TunerSearch behind = make({Schedule::blocking});
  static_cast<void>(behind.coarse_to_fine());
  EXPECT_DOUBLE_EQ(lowest_tried, lowest / 256);
}

TEST_F(TunerSearchTest, ASmallBudgetEndsItEarlyWithAPlan) {
  TunerSearch search = make({}, milliseconds(500));
  const auto found = search.coarse_to_fine();
  ASSERT_TRUE(found);
  EXPECT_LT(now, seconds(10));
  EXPECT_LT(search.looked_at(), search.space() / 4);
}

TEST_F(TunerSearchTest, StopsWhenAsked) {
  stop.request_stop();
  TunerSearch search = make();
  static_cast<void>(search.coarse_to_fine());
  EXPECT_LE(search.looked_at(), 1U);
  EXPECT_FALSE(make().exhaustive());
}

TEST_F(TunerSearchTest, GridsHoldWhatASchedulesPlansCanDifferIn) {
  const Held held{.blocks = 1, .block_threads = 128, .resident_blocks = 2, .groups_matter = false};
  for (const Grid& grid : tuning_grids({}, sixteen(), held)) {
    for (const Axis& axis : grid.axes) {
      EXPECT_FALSE(axis.values.empty());
      EXPECT_NE(axis.choice, Choice::block_threads);
      EXPECT_NE(axis.choice, Choice::workers);
    }
  }
  const auto grids = tuning_grids({Schedule::persistent}, sixteen(), held);
  for (const Point& point : all_points(grids, sixteen())) {
    EXPECT_LE(candidate_at(grids, point, sixteen()).plan.parallelism(), sixteen().resident);
  }
  EXPECT_LT(coarse_points(grids, sixteen()).size(), all_points(grids, sixteen()).size());
}

}  // namespace
}  // namespace headrace::serve::detail
