#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

namespace headrace::testing {
namespace {

using grid::Box;
using grid::Decomposition;
using grid::Extent;
using grid::Push;
using grid::Simulation;

class GridSimulationTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridSimulationTest);

/// The result of Skewed, computed by plain loops.
template <class T>
std::vector<T> skewed_by_hand(HostField<T> now, T share, std::uint64_t steps) {
  HostField<T> next(now.extent);
  next.periodic = now.periodic;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for_each_cell(Box::whole(now.extent), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const T about = now.read(x - 2, y, z) - now.read(x + 1, y - 1, z) + now.read(x - 1, y + 2, z + 1) +
                      now.read(x, y, z - 1) - now.read(x + 1, y + 2, z - 1);
      const T place = static_cast<T>(x + 2 * y + 3 * z + now.extent.nx);
      next.at(x, y, z) = now.at(x, y, z) * share + about * share + place * T(0.001) + static_cast<T>(step % 7);
    });
    std::swap(now.values, next.values);
  }
  return now.values;
}

/// All ways to push, and a number of steps that leaves a short cycle at the end.
template <class T>
void expect_skewed(const Decomposition& cut, int redundant) {
  constexpr std::uint64_t kSteps = 11;
  HostField<T> start = scattered<T>(cut.extent(), 7);
  start.periodic = cut.periodic();
  const std::vector<T> right = skewed_by_hand<T>(start, T(0.17), kSteps);
  for (const Push push : {Push::automatic, Push::store, Push::copy, Push::host}) {
    SCOPED_TRACE(fmt::format("{} parts, {} redundant, push {}", cut.parts().size(), redundant, grid::to_string(push)));
    Simulation simulation(cut, GridTest::devices(cut.parts().size()), skewed<T>(T(0.17)),
                          {.redundant = redundant, .push = push});
    simulation.set<T>(0, start.values);
    simulation.step(4);
    simulation.step(0);
    simulation.step(kSteps - 4);
    EXPECT_EQ(simulation.steps_done(), kSteps);
    EXPECT_EQ(field_of<T>(simulation, 0), right);
  }
}

TEST_P(GridSimulationTest, OneDeviceDoesWhatPlainLoopsDo) {
  for (const Extent& extent : {Extent{13, 9, 7}, Extent{37, 5}, Extent{65}, Extent{1, 1, 1}, Extent{1, 17, 3}}) {
    expect_skewed<float>(Decomposition::slabs(extent, 1, 0), 1);
    expect_skewed<double>(Decomposition::slabs(extent, 1, 0), 3);
  }
}

/// So large that phases and steps go through a part of a CPU device a few rows at a time.
TEST_P(GridSimulationTest, LargePartsAreEqualToTheLastBit) {
  expect_skewed<float>(Decomposition::slabs({96, 90, 7}, 1, 0), 1);
  expect_skewed<double>(Decomposition::slabs({96, 90, 7}, 1, 0), 3);
  expect_skewed<float>(Decomposition::slabs({9001, 11}, 1, 0), 4);
  expect_skewed<double>(Decomposition::slabs({4001, 24}, 2, 1), 3);
  expect_skewed<float>(Decomposition::slabs({97, 89, 21}, 3, 2), 2);
  expect_skewed<float>(Decomposition::blocks({190, 90, 10}, {2, 1, 2}), 2);
}

TEST_P(GridSimulationTest, SlabsAlongEveryAxisAreEqualToTheLastBit) {
  for (const std::size_t axis : {0U, 1U, 2U}) {
    expect_skewed<float>(Decomposition::slabs({17, 19, 23}, 3, axis), 1);
    expect_skewed<double>(Decomposition::slabs({17, 19, 23}, 2, axis), 2);
  }
  expect_skewed<float>(Decomposition::slabs({21, 29}, 3, 1), 2);
  expect_skewed<float>(Decomposition::slabs({67}, 4, 0), 3);
}

/// Without redundant layers, because the stencil's values depend on the number of a cell, which differs beyond a wall.
TEST_P(GridSimulationTest, PeriodicWallsAreEqualToTheLastBit) {
  const auto expect_wrapped = [](Decomposition cut, const std::array<bool, 3>& axes) {
    cut.set_periodic(axes);
    expect_skewed<float>(cut, 1);
  };
  for (const std::size_t axis : {0U, 1U, 2U}) {
    std::array<bool, 3> axes{};
    axes[axis] = true;
    expect_wrapped(Decomposition::slabs({7, 6, 5}, 1, 0), axes);
    expect_wrapped(Decomposition::slabs({9, 8, 7}, 2, axis), axes);
    expect_wrapped(Decomposition::slabs({9, 8, 7}, 3, (axis + 1) % 3), axes);
  }
  expect_wrapped(Decomposition::blocks({9, 8, 7}, {2, 2, 2}), {true, true, true});
  expect_wrapped(Decomposition::slabs({11, 9}, 3, 1), {false, true, false});
  expect_wrapped(Decomposition::slabs({11}, 2, 0), {true, false, false});
}

TEST_P(GridSimulationTest, BlocksExchangeCornersToo) {
  expect_skewed<float>(Decomposition::blocks({15, 14, 13}, {2, 2, 2}), 1);
  expect_skewed<double>(Decomposition::blocks({17, 17, 5}, {2, 2, 1}), 3);
  expect_skewed<float>(Decomposition::blocks({23, 25}, {3, 3, 1}), 2);
  expect_skewed<float>(Decomposition::blocks({9, 12, 11}, {1, 3, 2}), 2);
}

TEST_P(GridSimulationTest, UnevenPartsAndPartsThatAreAllBorder) {
  const std::vector<double> speeds{1, 5, 2};
  expect_skewed<float>(Decomposition::weighted({11, 8, 40}, 2, speeds), 2);
  expect_skewed<double>(Decomposition::weighted({40, 7}, 0, speeds), 1);
  expect_skewed<float>(Decomposition::slabs({6, 5, 8}, 4, 2), 2);  // as thick as the ghosts of their neighbours
  expect_skewed<float>(Decomposition::slabs({8, 9, 3}, 4, 0), 1);
}

TEST_P(GridSimulationTest, ManyCyclesKeepTheirOrder) {
  const Extent extent{24, 16};
  const HostField<float> start = scattered<float>(extent, 3);
  const std::vector<float> right = skewed_by_hand<float>(start, 0.1F, 300);
  for (const int redundant : {1, 2}) {
    Simulation simulation(Decomposition::blocks(extent, {2, 2, 1}), devices(4), skewed<float>(0.1F),
                          {.redundant = redundant});
    simulation.set<float>(0, start.values);
    simulation.step(300);
    EXPECT_EQ(field_of<float>(simulation, 0), right);
  }
}

/// Driven with its resources: a trace on the device of each part.
template <class T>
struct DrivenRun {
  static constexpr std::uint64_t kSteps = 9;
  static constexpr grid::Offsets kReceiver{3, 4, 2};

  DrivenRun(const Decomposition& cut, const std::vector<Device>& devices, grid::SimulationOptions options)
      : simulation(cut, devices, program(cut, devices), options) {
    for (int field = 0; field < 3; ++field) {
      simulation.set<T>(field, scattered<T>(cut.extent(), 11 + static_cast<std::uint64_t>(field)).values);
    }
  }

  grid::StencilProgram program(const Decomposition& cut, const std::vector<Device>& devices) {
    std::vector<Driven<T>> stencils;
    for (const Device device : devices) {
      traces.emplace_back(device, MemoryKind::mapped, kSteps * sizeof(T));
      std::ranges::fill(traces.back().host(), std::byte{0});
      stencils.push_back({.share = T(0.3), .trace = traces.back().as<T>()});
    }
    grid::StencilProgram made = driven<T>(stencils);
    made.only[1] = shell(cut.extent());
    made.only[3] = {Box{{2, 2, 1}, {7, 6, 3}}, Box::cell({8, 1, 1})};
    made.only[4] = {Box::cell(kReceiver)};
    return made;
  }

  /// The two ends along x.
  static std::vector<Box> shell(const Extent& extent) {
    Box low = Box::whole(extent);
    Box high = low;
    low.high[0] = 3;
    high.low[0] = extent.nx - 2;
    return {low, high};
  }

  /// Only one part owns the receiver; the others have written nothing.
  [[nodiscard]] std::vector<T> trace() const {
    std::vector<T> sum(kSteps);
    for (const Buffer& one : traces) {
      for (std::size_t step = 0; step < kSteps; ++step) sum[step] += one.as<T>()[step];
    }
    return sum;
  }

  std::vector<Buffer> traces;
  Simulation simulation;
};

template <class T>
void expect_driven(const Decomposition& cut, grid::SimulationOptions options) {
  SCOPED_TRACE(fmt::format("{} parts, {} redundant, push {}", cut.parts().size(), options.redundant,
                           grid::to_string(options.push)));
  using Run = DrivenRun<T>;
  Run run(cut, GridTest::devices(cut.parts().size()), options);
  Run alone(Decomposition::slabs(cut.extent(), 1, 0), GridTest::devices(1), {});
  for (Run* one : {&run, &alone}) {
    one->simulation.step(2);
    one->simulation.step(3);
    one->simulation.restrict(3, {});  // the driver stops
    one->simulation.step(Run::kSteps - 5);
  }
  for (const int field : {0, 1, 2, 3}) {
    EXPECT_EQ(field_of<T>(run.simulation, field), field_of<T>(alone.simulation, field)) << "field " << field;
  }
  EXPECT_EQ(run.trace(), alone.trace());
  EXPECT_EQ(
      alone.trace().back(),
      field_of<T>(alone.simulation, 0)[static_cast<std::size_t>((2 * cut.extent().ny + 4) * cut.extent().nx + 3)]);
}

TEST_P(GridSimulationTest, SeveralPhasesRestrictedOnesAndConstantFields) {
  for (const Push push : {Push::store, Push::copy, Push::host}) {
    for (const int redundant : {1, 2, 4}) {
      expect_driven<float>(Decomposition::slabs({13, 11, 12}, 3, 2), {.redundant = redundant, .push = push});
      expect_driven<double>(Decomposition::blocks({12, 13, 9}, {2, 2, 2}), {.redundant = redundant, .push = push});
    }
  }
}

/// A part alone, with several phases, two of which are restricted to boxes.
void expect_driven_by_hand(const Extent& extent, int redundant) {
  SCOPED_TRACE(fmt::format("{}, {} redundant", grid::to_string(extent), redundant));
  using Run = DrivenRun<double>;
  Run run(Decomposition::slabs(extent, 1, 0), GridTest::devices(1), {.redundant = redundant});
  auto u = scattered<double>(extent, 11);
  auto v = scattered<double>(extent, 12);
  auto stiffness = scattered<double>(extent, 13);
  HostField<double> memory(extent);
  std::vector<double> trace;
  for (std::uint64_t step = 0; step < Run::kSteps; ++step) {
    for_each_cell(Box::whole(extent), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      v.at(x, y, z) += stiffness.at(x, y, z) * (u.read(x + 1, y, z) - u.read(x, y + 1, z) + u.read(x, y, z + 1));
    });
    for (const Box& box : Run::shell(extent)) {
      for_each_cell(box, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
        memory.at(x, y, z) = memory.at(x, y, z) * 0.5 + u.read(x + 1, y, z);
        v.at(x, y, z) -= 0.3 * memory.at(x, y, z);
      });
    }
    for_each_cell(Box::whole(extent), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const double slope = v.read(x - 1, y, z) - v.read(x, y - 1, z) + v.read(x, y, z - 1);
      u.at(x, y, z) = (u.at(x, y, z) - stiffness.at(x, y, z) * slope) * 0.75;
    });
    for (const Box& box : {Box{{2, 2, 1}, {7, 6, 3}}, Box::cell({8, 1, 1})}) {
      for_each_cell(box, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
        u.at(x, y, z) = u.at(x, y, z) + static_cast<double>(step % 5) - 2.0;
      });
    }
    trace.push_back(u.at(3, 4, 2));
  }
  run.simulation.step(Run::kSteps);
  EXPECT_EQ(field_of<double>(run.simulation, 0), u.values);
  EXPECT_EQ(field_of<double>(run.simulation, 1), v.values);
  EXPECT_EQ(run.trace(), trace);
}

TEST_P(GridSimulationTest, DrivenAloneDoesWhatPlainLoopsDo) {
  expect_driven_by_hand({12, 10, 8}, 1);
  expect_driven_by_hand({12, 10, 8}, 4);
  expect_driven_by_hand({70, 70, 8}, 1);
  expect_driven_by_hand({70, 70, 8}, 3);
}

TEST_P(GridSimulationTest, OnlyWhatNeighboursNeedIsExchanged) {
  Simulation heat_like(Decomposition::slabs({20, 20}, 2, 1), devices(2), skewed<float>(0.1F), {.redundant = 2});
  EXPECT_EQ(heat_like.exchanged(), grid::fields(0)) << "an overwritten field needs no ghosts";
  EXPECT_EQ(heat_like.ghosts(), (grid::Layers{.low = {4, 2, 2}, .high = {2, 4, 2}}));
  EXPECT_EQ(heat_like.exchanged_bytes(), (2U + 4U) * 20 * sizeof(float));
  DrivenRun<float> run(Decomposition::slabs({20, 20, 20}, 2, 2), devices(2), {});
  EXPECT_FALSE(run.simulation.exchanged().contains(Driven<float>::stiffness)) << "it never changes";
}

TEST_P(GridSimulationTest, AViewSaysWhereCellsLie) {
  if (!on_cpu()) GTEST_SKIP() << "the host reads no device memory";
  const Extent extent{10, 9, 8};
  Simulation simulation(Decomposition::blocks(extent, {2, 1, 2}), devices(4), skewed<float>(0.1F));
  auto field = scattered<float>(extent, 1);
  simulation.set<float>(0, field.values);
  simulation.step(2);
  field.values = field_of<float>(simulation, 0);
  for (std::size_t part = 0; part < 4; ++part) {
    const grid::FieldView view = simulation.view(part, 0);
    EXPECT_EQ(view.own, simulation.decomposition().parts()[part]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.origin) % 128, 0U);
    for_each_cell(view.own.grow(view.ghosts), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const std::int64_t at =
          (x - view.own.low[0]) + (y - view.own.low[1]) * view.pitch + (z - view.own.low[2]) * view.plane;
      ASSERT_EQ(static_cast<const float*>(view.origin)[at], field.at(x, y, z)) << x << " " << y << " " << z;
    });
  }
}

TEST_P(GridSimulationTest, GoesOnWhereAnotherStopped) {
  const auto cut = Decomposition::slabs({16, 16}, 2, 1);
  const auto start = scattered<double>(cut.extent(), 5);
  Simulation first(cut, devices(2), skewed<double>(0.2));
  first.set<double>(0, start.values);
  first.step(5);
  Simulation second(Decomposition::slabs({16, 16}, 4, 0), devices(4), skewed<double>(0.2));
  second.set<double>(0, field_of<double>(first, 0));
  second.set_steps_done(first.steps_done());
  second.step(6);
  EXPECT_EQ(field_of<double>(second, 0), skewed_by_hand<double>(start, 0.2, 11));
}

TEST_P(GridSimulationTest, OneValueIsForAllCells) {
  const auto cut = Decomposition::slabs({19, 7, 5}, 2, 0);
  const std::vector<double> array(static_cast<std::size_t>(cut.extent().cells()), 0.375);
  const double value[] = {0.375};
  const auto after = [&](std::span<const double> values) {
    Simulation simulation(cut, devices(2), skewed<double>(0.2));
    simulation.set<double>(0, values);
    simulation.step(3);
    return field_of<double>(simulation, 0);
  };
  EXPECT_EQ(after(value), after(array));
  Simulation simulation(cut, devices(2), skewed<double>(0.2));
  EXPECT_THROW(simulation.set<double>(0, std::span(array).first(2)), UsageError);
}

TEST_P(GridSimulationTest, AnotherStencilFromTheNextStepOn) {
  const auto cut = Decomposition::slabs({16, 16}, 2, 1);
  const auto start = scattered<float>(cut.extent(), 5);
  Simulation simulation(cut, devices(2), skewed<float>(0.2F));
  simulation.set<float>(0, start.values);
  for (const std::size_t part : {0U, 1U}) simulation.set_stencil(part, Skewed<float>{0.1F});
  simulation.step(3);
  EXPECT_EQ(field_of<float>(simulation, 0), skewed_by_hand<float>(start, 0.1F, 3));
  EXPECT_THROW(simulation.set_stencil(0, Skewed<double>{0.1}), UsageError);
  EXPECT_THROW(simulation.set_stencil(2, Skewed<float>{0.1F}), UsageError);
}

}  // namespace
}  // namespace headrace::testing
