#include "serve/candidates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/serve/detail/rungs.hpp"

namespace headrace::serve::detail {
namespace {

using std::chrono::microseconds;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Le;

CandidateLimits sixteen() { return {.processors = 16, .generators = 1, .resident = 64, .bound = microseconds(500)}; }

TEST(Candidates, DoubleUpToTheMost) {
  EXPECT_THAT(doubling(15), ElementsAre(1, 2, 4, 8, 15));
  EXPECT_THAT(doubling(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(doubling(1), ElementsAre(1));
  EXPECT_THAT(doubling(0), ElementsAre(1));
}

TEST(Candidates, EachRungTriesWhatItSays) {
  const CandidateLimits limits = sixteen();
  const Axes single = axes_of(find_rung("single"), limits);
  EXPECT_THAT(single.threads, ElementsAre(1));
  EXPECT_THAT(single.streams, ElementsAre(1));
  const Axes blocking = axes_of(find_rung("page-locked"), limits);
  EXPECT_THAT(blocking.threads, ElementsAre(1, 2, 4, 8, 15));
  EXPECT_THAT(blocking.streams, ElementsAre(1));
  EXPECT_THAT(axes_of(find_rung("pipelined"), limits).streams, ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(axes_of(find_rung("async"), limits).threads, ElementsAre(1, 2, 4, 7));
  EXPECT_THAT(axes_of(find_rung("batched"), limits).batches, ElementsAre(8, 32, 128));
  const Axes dispatched = axes_of(find_rung("dispatched"), limits);
  EXPECT_THAT(dispatched.threads, ElementsAre(1, 2, 4, 8, 14));
  EXPECT_THAT(dispatched.streams, ElementsAre(1));
}

TEST(Candidates, ASingleThreadIsOneEverywhere) {
  CandidateLimits limits = sixteen();
  limits.single_thread = true;
  for (const Rung& rung : rungs()) {
    const Axes axes = axes_of(rung, limits);
    EXPECT_THAT(axes.threads, ElementsAre(1)) << rung.id;
    const Candidate made = make_candidate(rung.plan, 1, axes.streams.back(), 1, limits);
    EXPECT_EQ(made.generators, 1U);
    EXPECT_EQ(made.plan.threads, 1U);
  }
}

TEST(Candidates, ThreadsMaxAndFewProcessorsBoundThem) {
  CandidateLimits limits = sixteen();
  limits.threads_max = 3;
  EXPECT_THAT(axes_of(find_rung("pipelined"), limits).threads, ElementsAre(1, 2, 3));
  EXPECT_THAT(axes_of(find_rung("dispatched"), limits).threads, ElementsAre(1, 2, 3));
  limits.threads_max = 0;
  limits.processors = 1;
  EXPECT_THAT(axes_of(find_rung("pipelined"), limits).threads, ElementsAre(1, 2));
  EXPECT_THAT(axes_of(find_rung("dispatched"), limits).threads, ElementsAre(1));
  limits.resident = 3;
  EXPECT_THAT(axes_of(find_rung("pipelined"), limits).streams, ElementsAre(1, 2, 3));
}

TEST(Candidates, ClientsAreTheThreadsOfADispatchedPlan) {
  const Candidate made = make_candidate(find_rung("dispatched").plan, 8, 1, 1, sixteen());
  EXPECT_EQ(made.generators, 8U);
  EXPECT_EQ(made.plan.clients_max, 8U);
  EXPECT_EQ(made.plan.threads, 1U);
  EXPECT_EQ(made.in_flight, 16U);  // 64 resident, twice, over 8 clients
}

TEST(Candidates, ClientsAreTheThreadsOfACallersPlanWhoseBatchesDoNotWait) {
  const Axes axes = axes_of(find_rung("caller"), sixteen());
  EXPECT_THAT(axes.threads, ElementsAre(1, 2, 4, 8, 14));
  EXPECT_THAT(axes.streams, ElementsAre(1));
  EXPECT_THAT(axes.batches, ElementsAre(8, 32, 128));
  const Candidate made = make_candidate(find_rung("caller").plan, 4, 1, 8, sixteen());
  EXPECT_EQ(made.generators, 4U);
  EXPECT_EQ(made.plan.clients_max, 4U);
  EXPECT_EQ(made.plan.batch_age, Duration::zero());
  EXPECT_EQ(made.in_flight, 16U);  // two batches for each
}

TEST(Candidates, ABatchClosesByAgeWellWithinTheBound) {
  EXPECT_EQ(make_candidate(find_rung("batched").plan, 1, 1, 8, sixteen()).plan.batch_age, microseconds(50));
  Plan own = find_rung("batched").plan;
  own.batch_age = microseconds(3);
  EXPECT_EQ(make_candidate(own, 1, 1, 8, sixteen()).plan.batch_age, microseconds(3));
  EXPECT_EQ(make_candidate(find_rung("page-locked").plan, 1, 1, 1, sixteen()).plan.batch_age, Duration::zero());
}

TEST(Candidates, InFlightNeverExceedsTheSlots) {
  Plan plan = find_rung("batched").plan;
  plan.slots = 64;
  EXPECT_EQ(make_candidate(plan, 8, 8, 128, sixteen()).in_flight, 32U);
}

TEST(Candidates, ACapacityBeyondTheBoundCountsForLess) {
  EXPECT_DOUBLE_EQ(usable_capacity(1000, 1, std::chrono::milliseconds(2)), 1000);
  EXPECT_DOUBLE_EQ(usable_capacity(1000, 4, std::chrono::milliseconds(2)), 500);
  EXPECT_DOUBLE_EQ(usable_capacity(1000, 400, std::chrono::milliseconds(2)), 250);
  EXPECT_DOUBLE_EQ(usable_capacity(0, 4, std::chrono::milliseconds(2)), 0);
}

class Sweep : public ::testing::Test {
 protected:
  std::vector<Sized> run(const Axes& axes, const std::function<double(const Plan&)>& capacity) {
    return sweep(
        find_rung("pipelined").plan, axes, sixteen(),
        [&](const Candidate& next) {
          tried.emplace_back(next.plan.threads, next.plan.streams_per_thread);
          return capacity(next.plan);
        },
        refusal, stop.get_token());
  }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> tried;
  std::string refusal;
  std::stop_source stop;
};

TEST_F(Sweep, FindsTheBestAndGivesUpOnStreamsThatBringNothing) {
  const Axes axes{{1, 2, 4}, {1, 2, 4, 8, 16, 32}, {1}};
  const auto found =
      run(axes, [](const Plan& plan) { return 1e6 * plan.threads * std::min(4U, plan.streams_per_thread); });
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().capacity.threads, 4U);
  EXPECT_EQ(found.front().capacity.streams_per_thread, 4U);
  EXPECT_TRUE(std::ranges::is_sorted(found, std::ranges::greater{}, &Sized::usable));
  EXPECT_THAT(tried, Contains(std::pair(1U, 16U)));
  EXPECT_THAT(tried, ::testing::Not(Contains(std::pair(1U, 32U))));
}

TEST_F(Sweep, TriesNoMoreStreamsThanTwiceWhatIsResident) {
  const Axes axes{{8}, {1, 2, 4, 8, 16, 32}, {1}};
  static_cast<void>(run(axes, [](const Plan& plan) { return 1e6 * plan.streams_per_thread; }));
  EXPECT_EQ(tried.back(), std::pair(8U, 16U));
}

TEST_F(Sweep, KeepsTheFirstReasonOfWhatIsRefused) {
  const Axes axes{{1, 2}, {1}, {1}};
  const auto found = run(axes, [](const Plan& plan) -> double {
    if (plan.threads == 1) return 5;
    throw UsageError("more than fit");
  });
  EXPECT_EQ(refusal, "more than fit");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.front().capacity.threads, 1U);
  EXPECT_EQ(found.back().usable, 0);
}

TEST_F(Sweep, EndsWhenAsked) {
  static_cast<void>(run({{1, 2, 4, 8}, {1}, {1}}, [&](const Plan& plan) {
    if (plan.threads == 2) stop.request_stop();
    return 1.0;
  }));
  EXPECT_EQ(tried.size(), 2U);
}

}  // namespace
}  // namespace headrace::serve::detail
