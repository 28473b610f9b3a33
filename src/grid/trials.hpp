#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/grid/simulation.hpp"

/// The measurements behind tune(), for every kind of simulation.
namespace headrace::grid {

/// The values to try if nothing is forced.
inline constexpr std::array kTriedRedundant{1, 2, 4, 8};
inline constexpr std::array kTriedPushes{Push::store, Push::copy, Push::host};
/// The only choice for one part, which has no neighbour to exchange with.
inline constexpr std::array kUntried{1};
inline constexpr std::array kNoPush{Push::automatic};

/// Does this many steps of a simulation, from its first on.
using RunSteps = std::function<void(std::uint64_t steps)>;
/// Makes a simulation with these options. Throws as its constructor does.
using MakeRun = std::function<RunSteps(const SimulationOptions& options)>;

/// The shortest time of a step in three timed runs, after one untimed, of whole cycles with at least `steps` steps.
[[nodiscard]] Duration measure_step(const RunSteps& run, std::uint64_t steps, int redundant);

/// Every combination, except those that a mode does not have: Mode::resident has one push.
[[nodiscard]] std::vector<SimulationOptions> combinations(const SimulationOptions& rest, std::span<const int> redundant,
                                                          std::span<const Push> pushes, std::span<const Mode> modes);

/// Tries all choices. If none is possible, makes a simulation with `fallback`, which throws the reason if that also
/// fails.
[[nodiscard]] Tuned try_all(const std::vector<SimulationOptions>& choices, const SimulationOptions& fallback,
                            std::uint64_t steps, const MakeRun& make);

}  // namespace headrace::grid
