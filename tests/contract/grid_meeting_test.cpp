#include <fmt/format.h>

#include <array>
#include <chrono>
#include <set>

#include "headrace/base/error.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

/// Passes that exchange borders themselves, while their neighbours' run: the order of many, and what ends them.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Passes;
using grid::Push;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridMeetingTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridMeetingTest);

/// Nobody waits between cycles but for neighbours, so that parts of different size drift apart as far as they can.
TEST_P(GridMeetingTest, ManyCyclesKeepTheirOrder) {
  constexpr std::array kSpeeds{9.0, 2.0, 2.0, 4.0};
  for (const auto& cut : {Decomposition::weighted({40, 137}, 1, kSpeeds), Decomposition::blocks({53, 48}, {2, 2, 1})}) {
    for (const int redundant : {1, 3}) {
      const auto after = [&](const Decomposition& its, const grid::SimulationOptions& options) {
        Simulation simulation(its, devices(its.parts().size()), leaning(0.17F), options);
        simulation.set<float>(0, scattered<float>(its.extent(), 3).values);
        for (const std::uint64_t count : {150U, 1U, 61U}) simulation.step(count);
        return field_of<float>(simulation, 0);
      };
      EXPECT_EQ(after(cut, {.redundant = redundant, .push = Push::store, .passes = Passes::always}),
                after(Decomposition::slabs(cut.extent(), 1, 0), {.passes = Passes::never}))
          << redundant << " redundant";
    }
  }
}

/// Then streams show the pass alone.
TEST(GridMeetingCpuTest, ATimelineShowsThePass) {
  Simulation simulation(Decomposition::slabs({40, 30}, 2, 1), {Device::parse("cpu:0"), Device::parse("cpu:1")},
                        leaning(0.17F), {.push = Push::store, .passes = Passes::always});
  simulation.record_timeline(3);
  simulation.step(3);
  std::set<grid::Work> seen;
  for (const grid::WorkSpan& span : simulation.timeline()) seen.insert(span.work);
  EXPECT_EQ(seen, (std::set{grid::Work::body, grid::Work::interior}));
}

/// Three parts, of which one gets no pass started: its neighbours, and theirs, give up, and say whom they missed.
TEST(GridMeetingCpuTest, APartThatDoesNotAnswerIsNamed) {
  for (const std::size_t silent : {0U, 1U, 2U}) {
    std::array<FaultyDevice, 3> devices;
    Simulation simulation(
        Decomposition::slabs({12, 12}, 3, 1), {devices[0].device(), devices[1].device(), devices[2].device()},
        grid::heat<float>(2, 0.1F),
        {.push = Push::store, .passes = Passes::always, .wait_limit = std::chrono::milliseconds(300)});
    devices[silent].hold();
    const auto says =
        fmt::format("which has part {} of 3, did not answer within 0.3 s: its kernel has not begun", silent);
    EXPECT_THAT([&] { simulation.step(100); }, ThrowsMessage<DeviceError>(HasSubstr(says)));
    EXPECT_THAT([&] { simulation.step(1); }, ThrowsMessage<DeviceError>(HasSubstr(says)));
    devices[silent].release();  // what it still has to do leaves at once
  }
}

/// The passes of the others wait for it until they are told to leave.
TEST(GridMeetingCpuTest, ADeviceThatFailsEndsThePassesOfAll) {
  for (int calls = 0; calls < 60; calls += 3) {
    std::array<FaultyDevice, 3> devices;
    Simulation simulation(Decomposition::slabs({12, 12}, 3, 1),
                          {devices[0].device(), devices[1].device(), devices[2].device()}, grid::heat<float>(2, 0.1F),
                          {.redundant = 2, .push = Push::store, .passes = Passes::always});
    devices[1].fail_after(calls);
    EXPECT_THAT(([&] {
                  for (int call = 0; call < 8; ++call) simulation.step(40);
                }),
                ThrowsMessage<DeviceError>(HasSubstr("which has part 1 of 3, failed: ")))
        << calls;
    EXPECT_THROW(simulation.step(1), DeviceError);
  }
}

TEST(GridMeetingCpuTest, ADeviceThatFailsAsTheGridIsMade) {
  int failed = 0;
  for (int calls = 0; calls < 20; ++calls) {
    std::array<FaultyDevice, 2> devices;
    devices[1].fail_after(calls);
    try {
      Simulation simulation(Decomposition::slabs({12, 12}, 2, 1), {devices[0].device(), devices[1].device()},
                            grid::heat<float>(2, 0.1F), {.push = Push::store, .passes = Passes::always});
      simulation.step(40);
      ADD_FAILURE() << "nothing failed after " << calls << " calls";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::device_fault);
      ++failed;
    }
  }
  EXPECT_EQ(failed, 20);
}

}  // namespace
}  // namespace headrace::testing
