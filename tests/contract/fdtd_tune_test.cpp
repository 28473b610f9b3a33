#include "grid/fdtd_tune.hpp"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"

// Choices of an Fdtd by measurement: which are tried, and that forced ones stay.
namespace headrace::testing {
namespace {

using grid::FdtdOptions;
using grid::Forced;
using grid::Mode;
using grid::Push;
using grid::Trial;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

[[nodiscard]] FdtdOptions plane(std::size_t parts) {
  FdtdOptions options;
  options.extent = {40, 36, 1};
  options.spacing = 1e-3;
  options.devices.assign(parts, DeviceTest::device());
  options.cpml.cells = 4;
  return options;
}

[[nodiscard]] std::set<std::pair<int, Push>> tried(const std::vector<Trial>& trials) {
  std::set<std::pair<int, Push>> all;
  for (const Trial& trial : trials) all.emplace(trial.options.redundant, trial.options.push);
  return all;
}

class FdtdTuneTest : public DeviceTest {};

TEST_P(FdtdTuneTest, TakesTheQuickestOfWhatIsNotForced) {
  FdtdOptions options = plane(2);
  options.simulation.passes = grid::Passes::never;
  const grid::Tuned tuned = grid::tune(options, {}, 2);
  EXPECT_EQ(tried(tuned.trials).size(), 12U);
  Duration best = Duration::max();
  for (const Trial& trial : tuned.trials) {
    EXPECT_EQ(trial.options.passes, grid::Passes::never) << "values that the tuner does not choose stay as given";
    if (trial.why_not.empty()) best = std::min(best, trial.per_step);
  }
  const auto is_best = [&](const Trial& trial) {
    return trial.options.redundant == tuned.best.redundant && trial.options.push == tuned.best.push;
  };
  EXPECT_EQ(std::ranges::find_if(tuned.trials, is_best)->per_step, best);
  options.simulation = tuned.best;
  grid::Fdtd(options).step(3);
}

TEST_P(FdtdTuneTest, ADomainInSlabsHasNothingToChoose) {
  FdtdOptions options = plane(1);
  options.extent = {40, 200, 1};
  options.simulation.device_memory_bytes = 300000;
  EXPECT_TRUE(grid::Fdtd(options).simulation().slabs());
  EXPECT_EQ(grid::tune(options, {}, 2).trials.size(), 1U);
  options.simulation.device_memory_bytes = 0;
  EXPECT_EQ(grid::tune(options, {}, 2).trials.size(), 4U);
}

TEST_P(FdtdTuneTest, WhatIsForcedStays) {
  const FdtdOptions options = plane(2);
  EXPECT_EQ(tried(grid::tune(options, {.redundant = 3, .push = {}}, 1).trials),
            (std::set<std::pair<int, Push>>{{3, Push::store}, {3, Push::copy}, {3, Push::host}}));
  EXPECT_EQ(tried(grid::tune(options, {.redundant = {}, .push = Push::host}, 1).trials),
            (std::set<std::pair<int, Push>>{{1, Push::host}, {2, Push::host}, {4, Push::host}, {8, Push::host}}));
}

TEST_P(FdtdTuneTest, OnePartHasLayersOnlyForPasses) {
  FdtdOptions options = plane(1);
  EXPECT_EQ(grid::tune(options, {}, 1).trials.size(), 4U);
  options.simulation.mode = Mode::resident;
  EXPECT_EQ(grid::tune(options, {}, 1).trials.size(), 1U);
  options.simulation.mode = Mode::streams;
  options.dimensions = 3;
  options.extent = {12, 13, 14};
  EXPECT_EQ(grid::tune(options, {}, 1).trials.size(), 1U);
}

TEST_P(FdtdTuneTest, WhatCannotBeSaysWhy) {
  FdtdOptions options = plane(3);
  options.extent.ny = 12;
  options.extent.nx = 9;
  const grid::Tuned tuned = grid::tune(options, {}, 1);
  for (const Trial& trial : tuned.trials) {
    if (trial.options.redundant == 8) {
      EXPECT_THAT(trial.why_not, HasSubstr("thinner than"));
    }
  }
  EXPECT_LT(tuned.best.redundant, 8);
  EXPECT_THAT([&] { static_cast<void>(grid::tune(options, {}, 0)); }, ThrowsMessage<UsageError>(HasSubstr("one step")));
  options.time_step = 1;
  EXPECT_THAT([&] { static_cast<void>(grid::tune(options, {}, 1)); }, ThrowsMessage<UsageError>(HasSubstr("stable")));
}

TEST_P(FdtdTuneTest, SpeedsAreOfEachDeviceOnce) {
  FdtdOptions options = plane(3);
  const std::vector<double> speeds = grid::measure_speeds(options, 2);
  ASSERT_EQ(speeds.size(), 3U);
  EXPECT_GT(speeds[0], 0);
  EXPECT_EQ(speeds[1], speeds[0]) << "the same device";
  EXPECT_EQ(speeds[2], speeds[0]);
  options.decomposition = grid::Decomposition::weighted(options.extent, 1, speeds);
  grid::Fdtd(options).step(2);
  EXPECT_THROW(static_cast<void>(grid::measure_speeds(options, 0)), UsageError);
  options.devices.clear();
  EXPECT_THROW(static_cast<void>(grid::measure_speeds(options, 1)), UsageError);
}

HEADRACE_ON_EVERY_DEVICE(FdtdTuneTest);

}  // namespace
}  // namespace headrace::testing
