#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// What is not to be chosen, because the user has.
struct Forced {
  std::optional<int> redundant;
  std::optional<Push> push;
};

/// The redundant layers and the push, of those that are not forced, with which an Fdtd of these options has the
/// shortest step: as tune() of a Simulation, in vacuum, with the absorbing layers that it will have and in its mode.
/// With one part there is no push to choose, and layers only where they are steps of a pass over memory: in two
/// dimensions and Mode::streams. What is tried is gone when this returns, so an Fdtd that fits has room to be tried.
/// Throws UsageError for 0 steps, for several ranks, and what Fdtd throws where no trial can be.
[[nodiscard]] Tuned tune(const FdtdOptions& options, const Forced& forced = {}, std::uint64_t steps = 16);

/// Cells a second that each of options.devices updates with a part as large as an even cut gives it, in slabs along the
/// slowest axis: speeds for Decomposition::weighted(). A device has nobody beside it meanwhile, and is measured once
/// however often it is named. Throws as Fdtd does, and UsageError for 0 steps.
[[nodiscard]] std::vector<double> measure_speeds(const FdtdOptions& options, std::uint64_t steps = 16);

}  // namespace headrace::grid
