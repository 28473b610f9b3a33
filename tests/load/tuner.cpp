#include "headrace/serve/tuner.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/devices.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Tuner : public headrace::testing::DeviceTest {
 protected:
  /// Few plans, short looks, and a bound that a busy machine keeps.
  [[nodiscard]] TunerOptions quick() const {
    TunerOptions options;
    options.bound = seconds(5);
    options.budget = milliseconds(200);
    options.window = milliseconds(20);
    options.rank_tolerance = 0.02;
    options.threads_max = 1;
    options.schedules = {Schedule::blocking};
    options.cache_file = folder_.path() / "plans.json";
    return options;
  }

  headrace::testing::TemporaryFolder folder_;
};

TEST_P(Tuner, FindsAPlanAndKeepsIt) {
  const Operator op = operators::light({.steps = 8});
  const TunedPlan found = tune(device(), op, quick());
  ASSERT_TRUE(found.load) << found.note;
  EXPECT_FALSE(found.cached);
  EXPECT_EQ(found.plan.schedule, Schedule::blocking);
  EXPECT_GT(found.per_second, 0);
  EXPECT_LE(found.p99, quick().bound);
  EXPECT_GE(found.space, found.looked_at);

  TunerOptions again = quick();
  again.measure_cached = false;
  const TunedPlan kept = tune(device(), op, again);
  EXPECT_TRUE(kept.cached);
  EXPECT_FALSE(kept.load);
  EXPECT_EQ(kept.per_second, found.per_second);
  EXPECT_EQ(kept.plan.host_memory, found.plan.host_memory);
  again.cache = CacheUse::refresh;
  EXPECT_FALSE(tune(device(), op, again).cached);
}

TEST_P(Tuner, OptionsOutOfRangeAreRefused) {
  const Operator op = operators::light();
  const auto refused = [&](auto change) {
    TunerOptions options = quick();
    change(options);
    EXPECT_THROW(static_cast<void>(tune(device(), op, options)), UsageError);
  };
  refused([](TunerOptions& o) { o.bound = Duration::zero(); });
  refused([](TunerOptions& o) { o.budget = Duration{-1}; });
  refused([](TunerOptions& o) { o.window = Duration::zero(); });
  refused([](TunerOptions& o) { o.generators = 0; });
  refused([](TunerOptions& o) { o.schedules = {Schedule::none}; });
  refused([](TunerOptions& o) { o.arrivals = measure::ArrivalKind::trace; });
}

TEST_P(Tuner, ABoundThatNothingKeepsIsSaid) {
  TunerOptions options = quick();
  options.bound = Duration{1};
  const TunedPlan none = tune(device(), operators::light(), options);
  EXPECT_FALSE(none.load);
  EXPECT_EQ(none.per_second, 0);
  EXPECT_NE(none.note.find("no plan keeps p99 within"), std::string::npos) << none.note;
  EXPECT_FALSE(std::filesystem::exists(options.cache_file));
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(Tuner);

}  // namespace
}  // namespace headrace::serve
