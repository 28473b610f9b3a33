#pragma once

// heat() is the stencil of the heat equation, for a Simulation (headrace/grid/simulation.hpp) in one to three
// dimensions.
//
//     const float diffusivity = 1e-4F, time_step = 1e-3F, spacing = 1e-3F;
//     headrace::grid::StencilProgram program =
//         headrace::grid::heat<float>(2, diffusivity * time_step / (spacing * spacing));
//     std::printf("field %d of %d is the heat\n", headrace::grid::kHeat, program.field_count);

#include <array>

#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// Explicit Euler for the heat equation, second order in space (FTCS), in `Dimensions` dimensions. The temperature is 0
/// outside the domain. Stable for factor <= 1 / (2 * Dimensions).
template <class T, int Dimensions>
struct Heat {
  static constexpr const char* kName = "heat";  ///< For messages.
  using Value = T;                              ///< The type of values in fields.
  /// The fields.
  enum Fields : int {
    now,   ///< The temperature.
    next,  ///< The temperature after the step; swaps with `now`.
  };
  static constexpr int kFields = 2;  ///< Number of fields.
  /// A step is one phase.
  static constexpr std::array kPhases{
      Phase{.writes = fields(next), .reads = fields(now), .neighbours = fields(now), .reach = layers(1, Dimensions)}};
  static constexpr std::array kSwaps{Swap{now, next}};  ///< Fields that swap after each step.
  static constexpr std::array kSwept{0};                ///< Phases that passes do.
  static constexpr int kWatched = now;                  ///< For Simulation::step_with_changes().

  T factor;  ///< Diffusivity * time step / spacing^2.

  /// Computes one cell.
  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const T here = cell.get(now);
    T about = cell.get(now, -1, 0, 0) + cell.get(now, 1, 0, 0);
    if constexpr (Dimensions > 1) about += cell.get(now, 0, -1, 0) + cell.get(now, 0, 1, 0);
    if constexpr (Dimensions > 2) about += cell.get(now, 0, 0, -1) + cell.get(now, 0, 0, 1);
    cell.set(next, here + factor * (about - T{2 * Dimensions} * here));
  }
};

/// The field of heat() to set and get: the temperature.
inline constexpr int kHeat = 0;

/// The program of Heat for float or double, in 1 to 3 dimensions (Extent::dimensions()). Throws UsageError for any
/// other number, and for a factor that is not stable.
template <class T>
[[nodiscard]] StencilProgram heat(int dimensions, T factor);

}  // namespace headrace::grid
