#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grid/flow.hpp"
#include "grid/plan.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_support.hpp"

/// Passes that a CUDA device chains task by task, in domains that are large enough for it, leave what phases do.
namespace headrace::testing {
namespace {

using grid::Chains;
using grid::Decomposition;
using grid::Extent;
using grid::Norms;
using grid::Passes;
using grid::Simulation;
using Options = grid::SimulationOptions;

class GridChainTest : public GridTest {
 protected:
  /// So many tasks that each team has some; on a CPU device, where nothing is chained, a small one.
  [[nodiscard]] static Extent large() {
    return on_cpu() ? Extent{150, 61} : Extent{4096, 48 * std::int64_t{device().properties().multiprocessor_count}};
  }
};
HEADRACE_ON_EVERY_DEVICE(GridChainTest);

/// Whether the passes of a whole cycle are chained, on a part that is all of a domain.
[[nodiscard]] bool chained(const Extent& extent, const grid::StencilProgram& program, int redundant, bool watched) {
  const auto cut = Decomposition::slabs(extent, 1, 0);
  const grid::Flow flow = grid::flow_of(program, redundant);
  const auto layout = grid::lay_out(cut.parts()[0], cut.neighbours(0), flow.ghosts, flow.edge, program.value_bytes);
  const grid::PartPlans plans = grid::plan_part(cut, 0, flow, layout, program, GridTest::device());
  const grid::SweepLaunch& last = plans.amid.back().interior.sweeps.front();
  return (watched ? last.watched : last.plain).chained > 0;
}

struct Found {
  std::vector<Norms> changes;
  std::vector<std::vector<float>> fields;
};

/// Calls between which something else goes to the device.
[[nodiscard]] Found jacobi_after(const Extent& extent, const Options& options) {
  Simulation simulation(Decomposition::slabs(extent, 1, 0), GridTest::devices(1), grid::jacobi<float>(2), options);
  const auto values = scattered<float>(extent, 4).values;
  simulation.set<float>(grid::kJacobiSource, values);
  simulation.step(24);
  simulation.set<float>(0, values);
  Found found;
  for (const std::uint64_t count : {70U, 41U}) {
    simulation.step(13);
    for (const Norms& norms : simulation.step_with_changes(count)) found.changes.push_back(norms);
    found.changes.push_back(simulation.norms_of_difference(0, 1));
    for (const int field : {0, 1}) found.fields.push_back(field_of<float>(simulation, field));
  }
  return found;
}

TEST_P(GridChainTest, JacobiWithAndWithoutNorms) {
  const Extent extent = large();
  const Found right = jacobi_after(extent, {.passes = Passes::never});
  for (const int redundant : {1, 4, 8}) {
    EXPECT_EQ(chained(extent, grid::jacobi<float>(2), redundant, false), !on_cpu());
    EXPECT_EQ(chained(extent, grid::jacobi<float>(2), redundant, true), !on_cpu());
    const Found found = jacobi_after(extent, {.redundant = redundant, .passes = Passes::always});
    ASSERT_EQ(found.changes.size(), right.changes.size());
    for (std::size_t step = 0; step < found.changes.size(); ++step) {
      EXPECT_EQ(found.changes[step].maximum, right.changes[step].maximum) << redundant << " redundant, step " << step;
      EXPECT_EQ(found.changes[step].two, right.changes[step].two) << redundant << " redundant, step " << step;
    }
    EXPECT_TRUE(found.fields == right.fields) << redundant << " redundant";
  }
}

[[nodiscard]] std::vector<std::vector<float>> maxwell_after(const Extent& extent, const Options& options) {
  grid::FdtdOptions made;
  made.extent = extent;
  made.spacing = 0.01;
  made.devices = GridTest::devices(1);
  made.simulation = options;
  made.cpml.cells = 0;
  grid::Fdtd fdtd(made);
  fdtd.set<float>("hx", scattered<float>(extent, 9).values);
  std::vector<std::vector<float>> found;
  for (const std::uint64_t count : {9U, 41U}) {
    fdtd.step(count);
    for (const std::string& name : fdtd.state_fields()) {
      fdtd.get<float>(name, found.emplace_back(static_cast<std::size_t>(extent.cells())));
    }
  }
  return found;
}

TEST_P(GridChainTest, MaxwellsEquations) {
  const Extent extent = large();
  const auto right = maxwell_after(extent, {.passes = Passes::never});
  for (const int redundant : {1, 2, 4}) {
    EXPECT_TRUE(maxwell_after(extent, {.redundant = redundant, .passes = Passes::always}) == right) << redundant;
  }
}

/// The domain in parts on devices of their own, or as many as there are.
class GridChainOverCutsTest : public GridTest {
 protected:
  using Along = std::array<std::size_t, 3>;
  [[nodiscard]] static std::vector<Along> cuts() { return {{1, 2, 1}, {2, 1, 1}, {1, 3, 1}, {2, 2, 1}, {3, 1, 1}}; }
  /// So large that each part has more tasks than a CUDA device does at once; small on CPU devices.
  [[nodiscard]] static Extent domain(const Along& along) {
    if (on_cpu()) return {149, 301};
    const std::int64_t rows = 48 * std::int64_t{device().properties().multiprocessor_count};
    return {static_cast<std::int64_t>(along[0]) * 4096 + 5, static_cast<std::int64_t>(along[1]) * rows + 3};
  }
  [[nodiscard]] static std::size_t gpus() {
    const auto all = Device::list();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](Device one) { return one.kind() == DeviceKind::cuda; }));
  }
  [[nodiscard]] static bool has_devices(std::size_t count) { return on_cpu() || gpus() >= count; }
};
HEADRACE_ON_EVERY_DEVICE(GridChainOverCutsTest);

/// Whether the longest cycle of every part is chained over the cuts, with and without norms.
[[nodiscard]] bool chained_over_cuts(const Decomposition& cut, const grid::StencilProgram& program, int redundant) {
  const grid::Flow flow = grid::flow_of(program, redundant);
  for (std::size_t part = 0; part < cut.parts().size(); ++part) {
    const auto layout =
        grid::lay_out(cut.parts()[part], cut.neighbours(part), flow.ghosts, flow.edge, program.value_bytes);
    const auto plans = grid::plan_part(cut, part, flow, layout, program, GridTest::device(), {.over_cuts = true});
    if (!plans.amid.back().chained_over_cuts) return false;
  }
  return true;
}

[[nodiscard]] Found jacobi_over(const Decomposition& cut, std::size_t devices, const Options& options) {
  Simulation simulation(cut, GridTest::devices(devices), grid::jacobi<float>(2), options);
  const auto values = scattered<float>(cut.extent(), 4).values;
  simulation.set<float>(grid::kJacobiSource, values);
  simulation.step(24);
  simulation.set<float>(0, values);
  Found found;
  for (const std::uint64_t count : {70U, 41U}) {
    simulation.step(13);  // a cycle of fewer steps after chained ones
    for (const Norms& norms : simulation.step_with_changes(count)) found.changes.push_back(norms);
    found.changes.push_back(simulation.norms_of_difference(0, 1));
    for (const int field : {0, 1}) found.fields.push_back(field_of<float>(simulation, field));
  }
  return found;
}

TEST_P(GridChainOverCutsTest, JacobiWithAndWithoutNorms) {
  for (const Along& along : cuts()) {
    const std::size_t parts = along[0] * along[1];
    if (!has_devices(parts)) continue;
    const auto cut = Decomposition::blocks(domain(along), along);
    const Found right = jacobi_over(Decomposition::slabs(cut.extent(), 1, 0), 1, {.passes = Passes::never});
    for (const int redundant : {1, 2, 4}) {
      ASSERT_TRUE(chained_over_cuts(cut, grid::jacobi<float>(2), redundant)) << parts << " parts";
      const Found found =
          jacobi_over(cut, parts, {.redundant = redundant, .passes = Passes::always, .chains = Chains::always});
      ASSERT_EQ(found.changes.size(), right.changes.size());
      for (std::size_t step = 0; step < found.changes.size(); ++step) {
        EXPECT_EQ(found.changes[step].maximum, right.changes[step].maximum) << redundant << " redundant, step " << step;
        EXPECT_EQ(found.changes[step].two, right.changes[step].two) << redundant << " redundant, step " << step;
      }
      EXPECT_TRUE(found.fields == right.fields) << along[0] << " x " << along[1] << " parts, " << redundant;
    }
  }
}

[[nodiscard]] std::vector<std::vector<float>> maxwell_over(const Decomposition& cut, std::size_t devices,
                                                           const Options& options) {
  grid::FdtdOptions made;
  made.extent = cut.extent();
  made.spacing = 0.01;
  made.devices = GridTest::devices(devices);
  made.decomposition = cut;
  made.simulation = options;
  made.cpml.cells = 0;
  grid::Fdtd fdtd(made);
  fdtd.set<float>("hx", scattered<float>(cut.extent(), 9).values);
  std::vector<std::vector<float>> found;
  for (const std::uint64_t count : {9U, 41U, 200U}) {
    fdtd.step(count);
    for (const std::string& name : fdtd.state_fields()) {
      fdtd.get<float>(name, found.emplace_back(static_cast<std::size_t>(cut.extent().cells())));
    }
  }
  return found;
}

TEST_P(GridChainOverCutsTest, MaxwellsEquations) {
  for (const Along& along : cuts()) {
    const std::size_t parts = along[0] * along[1];
    if (!has_devices(parts)) continue;
    const auto cut = Decomposition::blocks(domain(along), along);
    const auto right = maxwell_over(Decomposition::slabs(cut.extent(), 1, 0), 1, {.passes = Passes::never});
    for (const int redundant : {1, 2, 4}) {
      EXPECT_TRUE(maxwell_over(cut, parts,
                               {.redundant = redundant, .passes = Passes::always, .chains = Chains::always}) == right)
          << along[0] << " x " << along[1] << " parts, " << redundant << " redundant";
    }
  }
}

/// A part that fails in any call ends the passes of the others, which wait for it.
TEST(GridChainFaultTest, ADeviceThatFailsEndsTheRunOfAll) {
  for (int calls = 0; calls < 400; calls += 9) {
    FaultyDevice low;
    FaultyDevice middle;
    FaultyDevice high;
    Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), {low.device(), middle.device(), high.device()},
                          grid::jacobi<float>(2), {.redundant = 2, .passes = Passes::always, .chains = Chains::always});
    simulation.set<float>(grid::kJacobiSource, scattered<float>({12, 30}, 4).values);
    middle.fail_after(calls);
    EXPECT_THAT(
        [&] {
          for (int call = 0; call < 4; ++call) {
            simulation.step(61);
            static_cast<void>(simulation.step_with_changes(67));
          }
        },
        ::testing::ThrowsMessage<DeviceError>(::testing::HasSubstr("which has part 1 of 3, failed: ")))
        << calls;
    EXPECT_THROW(simulation.step(1), DeviceError);
  }
}

/// Kernels that wait for each other need devices of their own: two parts on one device are not chained, nor do they
/// wait for ever.
TEST_P(GridChainOverCutsTest, PartsThatShareADeviceAreNotChained) {
  const auto cut = Decomposition::blocks(domain({1, 2, 1}), {1, 2, 1});
  const auto values = scattered<float>(cut.extent(), 4).values;
  const auto after = [&](const Decomposition& its, std::size_t parts) {
    Simulation simulation(its, std::vector<Device>(parts, device()), grid::jacobi<float>(2),
                          {.redundant = 4, .passes = Passes::always, .chains = Chains::always});
    simulation.set<float>(0, values);
    simulation.step(40);
    return field_of<float>(simulation, 0);
  };
  EXPECT_TRUE(after(cut, 2) == after(Decomposition::slabs(cut.extent(), 1, 0), 1));
}

}  // namespace
}  // namespace headrace::testing
