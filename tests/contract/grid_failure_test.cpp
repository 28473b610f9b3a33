#include <limits>

#include "headrace/base/error.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

/// Invalid arguments are refused with a reason, and a failing device ends the run for all, without a hang.
namespace headrace::testing {
namespace {

using grid::Box;
using grid::Decomposition;
using grid::Push;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridFailureTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridFailureTest);

TEST_P(GridFailureTest, WhatDoesNotFitIsRefused) {
  const auto cut = Decomposition::slabs({8, 8}, 2, 1);
  const auto with = [&](std::size_t count, grid::SimulationOptions options) {
    return [=] { const Simulation refused(cut, devices(count), grid::heat<float>(2, 0.1F), options); };
  };
  EXPECT_THAT(with(3, {}), ThrowsMessage<UsageError>(HasSubstr("2 parts need 2 devices")));
  EXPECT_THAT(with(2, {.redundant = 0}),
              ThrowsMessage<UsageError>(HasSubstr("redundant layers must cover 1 to 64 steps")));
  EXPECT_THAT(with(2, {.redundant = 65}), ThrowsMessage<UsageError>(HasSubstr("not 65")));
  EXPECT_THAT(with(2, {.pass_steps = 0}),
              ThrowsMessage<UsageError>(HasSubstr("a pass over memory must do 1 to 4 steps, not 0")));
  EXPECT_THAT(with(2, {.pass_steps = 5}), ThrowsMessage<UsageError>(HasSubstr("not 5")));
  EXPECT_THAT(with(2, {.redundant = 5}), ThrowsMessage<UsageError>(HasSubstr("at most 1 equal part along y")));
  const std::vector<Driven<float>> three(3);
  EXPECT_THAT(([&] { const Simulation refused(cut, devices(2), driven<float>(three)); }),
              ThrowsMessage<UsageError>(HasSubstr("given for 3 parts")));
  EXPECT_THROW(static_cast<void>(grid::parse_push("teleport")), UsageError);
  EXPECT_EQ(grid::parse_push("host"), Push::host);
}

TEST_P(GridFailureTest, DevicesOfTwoKindsAreRefused) {
  if (on_cpu()) GTEST_SKIP() << "needs a device of another kind";
  EXPECT_THROW(
      Simulation(Decomposition::slabs({8, 8}, 2, 1), {device(), Device::parse("cpu")}, grid::heat<float>(2, 0.1F)),
      UsageError);
}

TEST_P(GridFailureTest, ArraysAndFieldsThatAreNotThere) {
  Simulation simulation(Decomposition::slabs({8, 8}, 2, 1), devices(2), grid::heat<float>(2, 0.1F));
  std::vector<float> whole(64);
  std::vector<float> part(63);
  std::vector<double> doubles(64);
  std::vector<std::int32_t> integers(64);
  EXPECT_THROW(simulation.set<float>(2, whole), UsageError);
  EXPECT_THROW(simulation.set<float>(-1, whole), UsageError);
  EXPECT_THROW(simulation.get<float>(0, part), UsageError);
  EXPECT_THROW(simulation.set<double>(0, doubles), UsageError);
  EXPECT_THROW(simulation.get<std::int32_t>(0, integers), UsageError) << "of the same size, but another type";
  EXPECT_THROW(static_cast<void>(simulation.view(2, 0)), UsageError);
  EXPECT_THROW(static_cast<void>(simulation.view(0, 2)), UsageError);
  EXPECT_THROW(static_cast<void>(simulation.norms(2)), UsageError);
  EXPECT_THROW(static_cast<void>(simulation.norms_of_difference(0, -1)), UsageError);
  simulation.step(1);  // none of these has affected it
}

TEST_P(GridFailureTest, RestrictionsThatCannotBe) {
  const std::vector<Driven<float>> two(2);
  Simulation simulation(Decomposition::slabs({8, 8, 8}, 2, 1), devices(2), [&] {
    auto program = driven<float>(two);
    program.only[4] = std::vector<Box>{};
    return program;
  }());
  EXPECT_THROW(simulation.restrict(5, {}), UsageError);
  EXPECT_THROW(simulation.restrict(-1, {}), UsageError);
  EXPECT_THAT(([&] { simulation.restrict(3, {Box{{0, 0, 0}, {9, 1, 1}}}); }),
              ThrowsMessage<UsageError>(HasSubstr("must lie in the domain of 8 x 8 x 8")));
  EXPECT_THROW(simulation.restrict(3, {Box{{2, 2, 2}, {2, 3, 3}}}), UsageError);
  EXPECT_THAT(([&] { simulation.restrict(3, {Box{{0, 0, 0}, {3, 3, 3}}, Box{{2, 2, 2}, {4, 4, 4}}}); }),
              ThrowsMessage<UsageError>(HasSubstr("overlap")));
  Simulation heat(Decomposition::slabs({8, 8}, 2, 1), devices(2), grid::heat<float>(2, 0.1F));
  EXPECT_THAT(([&] { heat.restrict(0, {Box::cell({1, 1, 0})}); }),
              ThrowsMessage<UsageError>(HasSubstr("add the field to the phase's reads")));
}

TEST(GridFaultTest, MemoryThatIsNotThereIsSaid) {
  const auto cut = Decomposition::slabs({2000000000, 2000000000}, 2, 1);
  EXPECT_THROW(Simulation(cut, {Device::parse("cpu:0"), Device::parse("cpu:1")}, grid::heat<float>(2, 0.1F)),
               DeviceError);
}

/// Three parts on devices, the middle one of which can be made to fail.
struct FaultyGrid {
  FaultyDevice low;
  FaultyDevice middle;
  FaultyDevice high;

  [[nodiscard]] Simulation simulation(Push push) {
    return Simulation(Decomposition::slabs({12, 12, 12}, 3, 2), {low.device(), middle.device(), high.device()},
                      grid::heat<float>(3, 0.1F), {.redundant = 2, .push = push});
  }
};

TEST(GridFaultTest, ADeviceThatFailsInAnyCallEndsTheRun) {
  for (const Push push : {Push::store, Push::copy, Push::host}) {
    for (int calls = 0; calls < 60; calls += 3) {
      FaultyGrid grid;
      Simulation simulation = grid.simulation(push);
      grid.middle.fail_after(calls);
      EXPECT_THAT([&] { simulation.step(40); },
                  ThrowsMessage<DeviceError>(HasSubstr("which has part 1 of 3, failed: ")))
          << calls;
    }
  }
}

TEST(GridFaultTest, AfterAFaultEveryCallSaysSo) {
  FaultyGrid grid;
  Simulation simulation = grid.simulation(Push::store);
  simulation.step(3);
  grid.high.fail();
  EXPECT_THROW(simulation.step(1), DeviceError);
  std::vector<float> field(12 * 12 * 12);
  EXPECT_THROW(simulation.step(1), DeviceError);
  EXPECT_THROW(simulation.get<float>(0, field), DeviceError);
  EXPECT_THROW(simulation.set<float>(0, field), DeviceError);
  EXPECT_THROW(static_cast<void>(simulation.norms(0)), DeviceError);
}

TEST(GridFaultTest, ADeviceThatFailsAsTheGridIsMade) {
  for (int calls = 0; calls < 4; ++calls) {
    FaultyGrid grid;
    grid.low.fail_after(calls);
    try {
      Simulation simulation = grid.simulation(Push::host);
      simulation.step(1);
      ADD_FAILURE() << "nothing failed after " << calls << " calls";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::device_fault);
    }
  }
}

}  // namespace
}  // namespace headrace::testing
