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

/// One choice of options, tried.
struct Trial {
  SimulationOptions options;
  Duration per_step{};  ///< The best of three runs; meaningless where there is a reason.
  std::string why_not;  ///< Why it cannot be: parts too thin for the ghosts, memory, access. Empty where it can.
};

struct Tuned {
  SimulationOptions best;
  std::vector<Trial> trials;  ///< In the order in which they were tried.
};

/// Tries 1, 2, 4 and 8 redundant layers with every push on the real domain and devices, on fields of zeros, and gives
/// the options with the shortest step. Each trial has a simulation of its own, so there must be memory for one more,
/// and runs `steps` steps (rounded up to whole cycles) three times, after as many that are not timed. A stencil that
/// writes to memory of its own does so in trials too. With one part a mode has one trial, for there is nothing to
/// exchange. Mode::resident is tried where `modes` has it, which has one push; give it many steps then, for it gains by
/// launching once for all steps of a call. All of this process alone. Throws UsageError for 0 steps or no mode, and
/// what Simulation throws where no trial can be.
[[nodiscard]] Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices,
                         const StencilProgram& program, std::uint64_t steps = 16,
                         const std::vector<Mode>& modes = {Mode::streams});

}  // namespace headrace::grid
