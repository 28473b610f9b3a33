#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/grid/simulation.hpp"

/// Choosing by measurement: what tune() does for every kind of simulation.
namespace headrace::grid {

/// What is tried where nothing is forced.
inline constexpr std::array kTriedRedundant{1, 2, 4, 8};
inline constexpr std::array kTriedPushes{Push::store, Push::copy, Push::host};
/// The only choice of one part, which has no neighbour to exchange with.
inline constexpr std::array kUntried{1};
inline constexpr std::array kNoPush{Push::automatic};

/// Does so many steps of a simulation, from its first on.
using RunSteps = std::function<void(std::uint64_t steps)>;
/// Makes a simulation with these options; throws what its constructor does.
using MakeRun = std::function<RunSteps(const SimulationOptions& options)>;

/// Whole cycles of at least so many steps, timed three times after once that is not: the best, a step.
[[nodiscard]] Duration measure_step(const RunSteps& run, std::uint64_t steps, int redundant);

/// Every combination, without what a mode does not have: Mode::resident has one push.
[[nodiscard]] std::vector<SimulationOptions> combinations(const SimulationOptions& rest, std::span<const int> redundant,
                                                          std::span<const Push> pushes, std::span<const Mode> modes);

/// Tries all of them. Where none can be, makes one of `fallback`, which throws why, if it still cannot.
[[nodiscard]] Tuned try_all(const std::vector<SimulationOptions>& choices, const SimulationOptions& fallback,
                            std::uint64_t steps, const MakeRun& make);

}  // namespace headrace::grid
