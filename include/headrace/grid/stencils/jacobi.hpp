#pragma once

// jacobi() is the stencil of Jacobi's iteration for Poisson's equation, in one to three dimensions.
//
//     auto cut = headrace::grid::Decomposition::best({256, 256}, 1);
//     headrace::grid::Simulation solver(cut, {headrace::Device::parse("best")}, headrace::grid::jacobi<double>(2));
//     solver.set<double>(headrace::grid::kJacobiSource, std::vector<double>{1});  // in all cells
//     solver.step(1000);
//     std::printf("residual %g\n", headrace::grid::jacobi_residual(solver).two);
//     std::vector<double> solution(256 * 256);
//     solver.get<double>(headrace::grid::kJacobiSolution, solution);

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/grid/simulation.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// Jacobi's iteration for Poisson's equation, second order in space, in `Dimensions` dimensions: it solves 2 *
/// Dimensions * u - (sum of u over the neighbours) = source for each cell, with u = 0 outside the domain. `source` is
/// spacing^2 times the right side of -laplace(u) = f. See Saad, Iterative Methods for Sparse Linear Systems (2nd
/// edition), section 4.1.
template <class T, int Dimensions>
struct Jacobi {
  static constexpr const char* kName = "jacobi";  ///< For messages.
  using Value = T;                                ///< The type of values in fields.
  /// The fields.
  enum Fields : int {
    now,     ///< The solution so far, u.
    next,    ///< The solution after the step; swaps with `now`.
    source,  ///< The right side.
  };
  static constexpr int kFields = 3;  ///< Number of fields.
  /// A step is one phase.
  static constexpr std::array kPhases{Phase{
      .writes = fields(next), .reads = fields(source), .neighbours = fields(now), .reach = layers(1, Dimensions)}};
  static constexpr std::array kSwaps{Swap{now, next}};  ///< Fields that swap after each step.
  static constexpr std::array kSwept{0};                ///< Phases that passes do.
  static constexpr int kWatched = now;                  ///< For Simulation::step_with_changes().

  T weight = T{1} / T{2 * Dimensions};  ///< The reciprocal of the diagonal.

  /// Computes one cell.
  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    T about = cell.get(now, -1, 0, 0) + cell.get(now, 1, 0, 0);
    if constexpr (Dimensions > 1) about += cell.get(now, 0, -1, 0) + cell.get(now, 0, 1, 0);
    if constexpr (Dimensions > 2) about += cell.get(now, 0, 0, -1) + cell.get(now, 0, 0, 1);
    cell.set(next, (about + cell.get(source)) * weight);
  }
};

/// The field of jacobi() that holds the solution.
inline constexpr int kJacobiSolution = 0;
/// The field of jacobi() that holds the right side.
inline constexpr int kJacobiSource = 2;

/// The program of Jacobi for float or double, in 1 to 3 dimensions (Extent::dimensions()). Throws UsageError for any
/// other number.
template <class T>
[[nodiscard]] StencilProgram jacobi(int dimensions);

/// The norms of the residual, source - (2 * dimensions * u - neighbours), of the solution before the last step,
/// computed from the change that the step made. For a simulation of jacobi() that has done a step since its fields were
/// set.
[[nodiscard]] Norms jacobi_residual(Simulation& simulation);

/// Does `count` steps, and returns for each the norms of the residual before it, computed on the way; see
/// Simulation::step_with_changes().
[[nodiscard]] std::vector<Norms> jacobi_step_with_residuals(Simulation& simulation, std::uint64_t count);

}  // namespace headrace::grid
