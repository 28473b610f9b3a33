#include "headrace/serve/detail/ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Ladder : public headrace::testing::DeviceTest {};

TEST_P(Ladder, LoadVerifiesAndMeasures) {
  measure::LoadOptions options;
  options.rate_per_second = 2000;
  options.warm_up = milliseconds(10);
  options.window = milliseconds(20);
  const PlanLoad result = load(device(), operators::light(), {}, options);
  EXPECT_GT(result.load.answered, 40U);
  EXPECT_EQ(result.load.wrong + result.load.failed, 0U);
  EXPECT_GT(result.roofs.lowest(), 0);
  EXPECT_FALSE(result.roofs.lowest_name().empty());
  options.rate_per_second = 1e12;
  EXPECT_THROW(static_cast<void>(load(device(), operators::light(), {}, options)), UsageError);
}

// Every load must catch an operator whose answers on the device differ from those on the host.
TEST_P(Ladder, WrongAnswersAreCounted) {
  Operator op = operators::light();
  const Operator other = operators::light({.steps = 65});
  op.load = [honest = op.load, other](Device device) {
    return device == Device::parse("cpu") ? honest(device) : other.load(device);
  };
  const Device wrong_device = device().kind() == DeviceKind::cpu ? Device::parse("cpu:1") : device();
  measure::LoadOptions options;
  options.rate_per_second = 1000;
  options.warm_up = milliseconds(5);
  options.window = milliseconds(20);
  options.windows_max = 3;
  const PlanLoad result = load(wrong_device, op, {}, options);
  EXPECT_GT(result.load.wrong, 0U);
  EXPECT_EQ(result.load.wrong, result.load.answered);
  EXPECT_FALSE(measure::sustains(result.load, seconds(10)));
}

TEST_P(Ladder, FindsARateOrSaysWhyNot) {
  LadderOptions options;
  options.rungs = {1, 7};
  options.bound = seconds(5);  // a busy machine keeps this bound
  options.window = milliseconds(20);
  options.rank_tolerance = 0.02;
  options.threads_max = 1;
  int rows = 0;
  const LadderResult result = climb(device(), operators::light(), options, {}, [&](const RungResult&) { ++rows; });
  ASSERT_EQ(result.rungs.size(), 2U);
  EXPECT_EQ(rows, 2);
  for (const RungResult& row : result.rungs) {
    EXPECT_TRUE(row.load || !row.note.empty());
    if (row.load) {
      EXPECT_GT(row.load->measured_per_second, 0);
      EXPECT_LE(row.load->latency.p99, options.bound);
    }
  }
  EXPECT_TRUE(result.rungs[0].load) << result.rungs[0].note;
}

// If no candidate keeps the bound, the search tries lower rates for each, but no less than a share of the best
// capacity: with so short a bound a quarter of it is usable, and a sixteenth of that is the lowest rate.
TEST_P(Ladder, GivesUpAboveAShareOfTheBestCapacity) {
  LadderOptions options;
  options.rungs = {3};
  options.bound = std::chrono::nanoseconds(1);
  options.window = milliseconds(2);
  options.rank_tolerance = 0.1;
  options.threads_max = 2;
  std::vector<double> rates;
  const LadderResult result = climb(device(), operators::light(), options, [&](const LadderProgress& progress) {
    if (progress.rate_per_second > 0) rates.push_back(progress.rate_per_second);
  });
  ASSERT_EQ(result.rungs.size(), 1U);
  EXPECT_FALSE(result.rungs[0].load);
  EXPECT_NE(result.rungs[0].note.find("no rate keeps p99"), std::string::npos) << result.rungs[0].note;
  double best = 0;
  for (const Capacity& capacity : result.rungs[0].capacities) best = std::max(best, capacity.per_second);
  ASSERT_FALSE(rates.empty());
  EXPECT_GT(result.rungs[0].capacities.size(), 1U);
  EXPECT_GE(*std::ranges::min_element(rates), 0.999 * best / 4 / 16);
}

TEST_P(Ladder, StopsWhenAsked) {
  std::stop_source stop;
  LadderOptions options;
  options.stop = stop.get_token();
  options.window = milliseconds(20);
  const LadderResult result = climb(device(), operators::light(), options, [&](const LadderProgress& progress) {
    if (progress.rung == 1) stop.request_stop();
  });
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.rungs.size(), rungs().size());
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(Ladder);

}  // namespace
}  // namespace headrace::serve
