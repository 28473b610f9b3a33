#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// Options that the user has fixed, so that tune() must not choose them.
struct Forced {
  std::optional<int> redundant;
  std::optional<Push> push;
};

/// Finds the redundant layers and the push, unless forced, with which an Fdtd of these options has the shortest step.
/// Like tune() of a Simulation, it measures in vacuum, with the absorbing layers and the mode of these options. With
/// one part there is no push to choose, and layers matter only where they are steps of a pass over memory: in two
/// dimensions and Mode::streams. All trials are freed on return, so an Fdtd that fits on its own can be tried. Throws
/// UsageError for 0 steps and for several ranks, and what Fdtd throws if no trial is possible.
[[nodiscard]] Tuned tune(const FdtdOptions& options, const Forced& forced = {}, std::uint64_t steps = 16);

/// Cells a second that each of options.devices updates with a part as large as an even cut gives it, in slabs along the
/// slowest axis: speeds for Decomposition::weighted(). Each device is measured alone, and once even if it is listed
/// several times. Throws as Fdtd does, and UsageError for 0 steps.
[[nodiscard]] std::vector<double> measure_speeds(const FdtdOptions& options, std::uint64_t steps = 16);

}  // namespace headrace::grid
