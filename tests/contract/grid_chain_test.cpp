#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grid/flow.hpp"
#include "grid/plan.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/grid_support.hpp"

/// Passes that a CUDA device chains task by task, in domains large enough for it, give the results of phases.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Norms;
using grid::Passes;
using grid::Simulation;
using Options = grid::SimulationOptions;

class GridChainTest : public GridTest {
 protected:
  /// Enough tasks that each team has some; on a CPU device, where nothing is chained, a small domain.
  [[nodiscard]] static Extent large() {
    return on_cpu() ? Extent{150, 61} : Extent{4096, 48 * std::int64_t{device().properties().multiprocessor_count}};
  }
};
HEADRACE_ON_EVERY_DEVICE(GridChainTest);

/// Whether the passes of a whole cycle are chained, for a part that is the whole domain.
[[nodiscard]] bool chained(const Extent& extent, const grid::StencilProgram& program, int redundant, bool watched) {
  const auto cut = Decomposition::slabs(extent, 1, 0);
  const grid::Flow flow = grid::flow_of(program, redundant);
  const auto layout = grid::lay_out(cut.parts()[0], cut.neighbours(0), flow.ghosts, flow.edge, program.value_bytes);
  const grid::PartPlans plans = grid::plan_part(cut, 0, flow, layout, program, GridTest::device(), false);
  const grid::SweepLaunch& last = plans.amid.back().interior.sweeps.front();
  return (watched ? last.watched : last.plain).chained > 0;
}

struct Found {
  std::vector<Norms> changes;
  std::vector<std::vector<float>> fields;
};

/// Does calls between which other work goes to the device.
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

}  // namespace
}  // namespace headrace::testing
