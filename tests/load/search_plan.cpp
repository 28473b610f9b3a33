#include "serve/search_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SearchPlan : public headrace::testing::DeviceTest {};

/// A short search with a bound that a busy machine keeps.
PlanSearchOptions quick() {
  PlanSearchOptions options;
  options.bound = seconds(5);
  options.window = milliseconds(20);
  options.rank_tolerance = 0.01;
  options.start_per_second = 1000;
  options.most_per_second = 2000;
  return options;
}

TEST_P(SearchPlan, ConfirmsARateAsOftenAsAskedAndKeepsWhatItTried) {
  PlanSearchOptions options = quick();
  options.confirmations = 3;
  options.generators = 2;
  const PlanSearch found = search_plan(device(), operators::light({.steps = 8}), find_rung("7").plan, options);
  ASSERT_EQ(found.confirmed.size(), 3U) << found.note;
  EXPECT_TRUE(found.note.empty());
  EXPECT_GT(found.capacity, 0);
  EXPECT_EQ(found.generators, 2U);
  EXPECT_GE(found.plan.clients_max, 2U);
  for (const auto& load : found.confirmed) {
    EXPECT_TRUE(measure::sustains(load, options.bound));
    EXPECT_EQ(load.wrong, 0U);
  }
  EXPECT_GE(found.loads, 3U);
  EXPECT_LE(found.loads, 3 * options.tries);
  EXPECT_GT(found.tried.size(), found.loads);
  EXPECT_TRUE(std::ranges::is_sorted(found.tried, {}, &measure::LoadResult::incoming_per_second));
}

TEST_P(SearchPlan, SaysWhyThereIsNoRate) {
  PlanSearchOptions options = quick();
  options.bound = Duration{1};
  const PlanSearch found = search_plan(device(), operators::light({.steps = 8}), find_rung("7").plan, options);
  EXPECT_TRUE(found.confirmed.empty());
  EXPECT_NE(found.note.find("no rate keeps p99 within"), std::string::npos) << found.note;
  EXPECT_NE(found.note.find("p99 was"), std::string::npos) << found.note;
  EXPECT_FALSE(found.tried.empty());
}

TEST_P(SearchPlan, EndsWhenAskedTo) {
  PlanSearchOptions options = quick();
  std::stop_source source;
  source.request_stop();
  options.stop = source.get_token();
  const PlanSearch found = search_plan(device(), operators::light({.steps = 8}), find_rung("7").plan, options);
  EXPECT_TRUE(found.confirmed.empty());
  EXPECT_EQ(found.note, "interrupted");
}

TEST_P(SearchPlan, RefusesOptionsOutOfRange) {
  const auto refused = [&](auto change) {
    PlanSearchOptions options = quick();
    change(options);
    EXPECT_THROW(static_cast<void>(search_plan(device(), operators::light(), Plan{}, options)), UsageError);
  };
  refused([](PlanSearchOptions& options) { options.bound = Duration{}; });
  refused([](PlanSearchOptions& options) { options.window = Duration{}; });
  refused([](PlanSearchOptions& options) { options.confirmations = 0; });
  refused([](PlanSearchOptions& options) { options.tries = 0; });
  refused([](PlanSearchOptions& options) { options.tries = 1001; });
  refused([](PlanSearchOptions& options) { options.resolution = 0; });
  refused([](PlanSearchOptions& options) { options.resolution = 0.6; });
  refused([](PlanSearchOptions& options) { options.generators = 0; });
  refused([](PlanSearchOptions& options) { options.generators = 65; });
  refused([](PlanSearchOptions& options) { options.arrivals = measure::ArrivalKind::trace; });
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(SearchPlan);

}  // namespace
}  // namespace headrace::serve
