// A user-defined stencil on several devices: heat in a plate whose cells conduct with different strength. The plate is
// cut into one part per device; each has copies of its neighbours' border cells, which Headrace keeps up to date.
//
// A C++ compiler builds it for CPU devices. In a .cu file, nvcc builds it for GPUs without changes.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/simulation.hpp"

namespace {

namespace grid = headrace::grid;

constexpr grid::Extent kPlate{300, 200};
constexpr int kSteps = 500;

struct Plate {
  static constexpr const char* kName = "plate";
  using Value = double;
  enum Fields : int { now, next, conducts };
  static constexpr int kFields = 3;
  // Each step has one phase. It computes `next` from `now` at most one cell away, and from `conducts` there.
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(next),
                                                  .reads = grid::fields(now, conducts),
                                                  .neighbours = grid::fields(now, conducts),
                                                  .reach = grid::layers(1, 2)}};
  static constexpr std::array kSwaps{grid::Swap{now, next}};

  double factor;

  // Heat that flows in from a neighbour: limited by the worse conductor of the two, and none at the plate's edge.
  template <class Cell>
  HEADRACE_HD double flow(const Cell& cell, int dx, int dy) const {
    const double here = cell.get(conducts);
    const double there = cell.get(conducts, dx, dy, 0);
    return (here < there ? here : there) * (cell.get(now, dx, dy, 0) - cell.get(now));
  }

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const double in = flow(cell, -1, 0) + flow(cell, 1, 0) + (flow(cell, 0, -1) + flow(cell, 0, 1));
    cell.set(next, cell.get(now) + factor * in);
  }
};

std::vector<headrace::Device> cpu_devices(std::size_t count) {
  std::vector<headrace::Device> devices;
  for (std::size_t i = 0; i < count; ++i) devices.push_back(headrace::Device::parse("cpu:" + std::to_string(i)));
  return devices;
}

std::vector<double> run(std::size_t devices, int redundant) {
  const auto cut = grid::Decomposition::best(kPlate, devices);
  grid::Simulation simulation(cut, cpu_devices(devices), grid::make_stencil(Plate{.factor = 0.2}),
                              {.redundant = redundant});
  std::vector<double> heat(static_cast<std::size_t>(kPlate.cells()));
  std::vector<double> conducts(heat.size());
  for (std::int64_t y = 0; y < kPlate.ny; ++y) {
    for (std::int64_t x = 0; x < kPlate.nx; ++x) {
      const auto cell = static_cast<std::size_t>(y * kPlate.nx + x);
      heat[cell] = x < 20 ? 1.0 : 0.0;                     // hot on the left
      conducts[cell] = x == 40 && y % 50 > 4 ? 0.0 : 1.0;  // a wall with gaps
    }
  }
  simulation.set<double>(Plate::now, heat);
  simulation.set<double>(Plate::conducts, conducts);
  simulation.step(kSteps);
  simulation.get<double>(Plate::now, heat);
  std::printf("%zu device%s, exchange every %d step%s: %llu bytes each time, the cell behind a gap has %.6f\n", devices,
              devices == 1 ? "" : "s", redundant, redundant == 1 ? "" : "s",
              static_cast<unsigned long long>(simulation.exchanged_bytes()), heat[100 * kPlate.nx + 45]);
  return heat;
}

}  // namespace

int main() {
  try {
    const std::vector<double> alone = run(1, 1);
    const bool same = run(2, 1) == alone && run(4, 1) == alone && run(4, 4) == alone;
    std::printf("%s\n", same ? "equal to the last bit" : "NOT equal");
    return same ? 0 : 1;
  } catch (const headrace::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
