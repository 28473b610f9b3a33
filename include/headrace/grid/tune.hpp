#pragma once

// tune() finds how a stencil runs fastest on given devices: how many steps lie between exchanges, and how cells get to
// neighbours.
//
//     auto make_fast = [](const headrace::grid::StencilProgram& program) {
//       auto cut = headrace::grid::Decomposition::slabs({1024, 1024}, 2, 1);
//       std::vector<headrace::Device> devices(2, headrace::Device::parse("best"));
//       headrace::grid::Tuned tuned = headrace::grid::tune(cut, devices, program);
//       return headrace::grid::Simulation(cut, devices, program, tuned.best);
//     };

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// One choice of options that tune() tried.
struct Trial {
  SimulationOptions options;  ///< The options.
  Duration per_step{};        ///< The best of three runs; meaningless unless why_not is empty.
  std::string why_not;        ///< Why it cannot run: parts too thin for the ghosts, memory, access. Empty if it can.
};

/// What tune() found.
struct Tuned {
  SimulationOptions best;     ///< The options with the shortest step.
  std::vector<Trial> trials;  ///< In the order in which they were tried.
};

/// Tries 1, 2, 4 and 8 redundant layers with every push on the real domain and devices, on fields of zeros, and returns
/// the options with the shortest step. Each trial makes a simulation of its own, so there must be memory for one more,
/// and runs `steps` steps (rounded up to whole cycles) three times, after as many that are not timed. A stencil that
/// writes to memory of its own does so in trials too. With one part there is nothing to exchange, so each mode has one
/// trial. Mode::resident is tried if `modes` lists it, with its only push; use many steps then, because it gains by
/// launching once for all steps of a call. Only for a domain of this process alone. Throws UsageError for 0 steps or no
/// mode, and as Simulation does if no trial can run.
[[nodiscard]] Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices,
                         const StencilProgram& program, std::uint64_t steps = 16,
                         const std::vector<Mode>& modes = {Mode::streams});

}  // namespace headrace::grid
