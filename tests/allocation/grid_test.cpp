#include <vector>

#include "failing_new.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/simulation.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"

namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Mode;
using grid::Simulation;
using grid::SimulationOptions;

std::vector<Device> two_devices() { return {Device::parse("cpu:44"), Device::parse("cpu:45")}; }

void simulate(const SimulationOptions& options) {
  const Extent extent{24, 10, 1};
  Simulation simulation(Decomposition::slabs(extent, 2, 0), two_devices(), grid::heat(2, 0.1), options);
  std::vector<double> field(static_cast<std::size_t>(extent.cells()), 1.0);
  simulation.set<double>(0, field);
  simulation.step(5);
  simulation.get<double>(0, field);
  EXPECT_GT(field[5], 0.0);
}

TEST(AllocationFailuresOfGrids, InStreamsAreExceptions) {
  fail_each_allocation("a grid", [] { simulate({.redundant = 2}); });
}

TEST(AllocationFailuresOfGrids, OfAResidentOneAreExceptions) {
  fail_each_allocation("a resident grid",
                       [] { simulate({.mode = Mode::resident, .wait_limit = std::chrono::seconds(5)}); });
}

TEST(AllocationFailuresOfGrids, OfNormsAreExceptions) {
  fail_each_allocation("norms of a grid", [] {
    const Extent extent{24, 10, 1};
    Simulation simulation(Decomposition::slabs(extent, 2, 0), two_devices(), grid::jacobi<double>(2), {});
    const std::vector<double> source(static_cast<std::size_t>(extent.cells()), 1.0);
    simulation.set<double>(grid::kJacobiSource, source);
    simulation.record_timeline(2);
    EXPECT_EQ(simulation.step_with_changes(3).size(), 3U);
    EXPECT_GT(simulation.norms(grid::kJacobiSolution).maximum, 0.0);
    static_cast<void>(simulation.timeline());
  });
}

TEST(AllocationFailuresOfGrids, OfMaxwellsEquationsAreExceptions) {
  fail_each_allocation("fdtd", [] {
    grid::FdtdOptions options;
    options.extent = {20, 18, 1};
    options.spacing = 1e-3;
    options.devices = two_devices();
    options.cpml.cells = 4;
    grid::Fdtd fdtd(std::move(options));
    const std::vector<double> samples{1, 2, 1};
    fdtd.add_source("ez", {9, 9, 0}, samples);
    const std::size_t receiver = fdtd.add_receiver("ez", {10, 9, 0});
    fdtd.step(6);
    EXPECT_EQ(fdtd.trace(receiver).size(), 6U);
  });
}

}  // namespace
}  // namespace headrace::testing
