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

/// Jacobi's iteration for Poisson's equation, second order in space, in `Dimensions` dimensions: u is 0 beyond the
/// domain, and for each cell 2 * Dimensions * u less its neighbours is to be `source` (spacing^2 times the right side
/// of -laplace(u) = f). See Saad, Iterative Methods for Sparse Linear Systems (2nd edition), section 4.1.
template <class T, int Dimensions>
struct Jacobi {
  static constexpr const char* kName = "jacobi";
  using Value = T;
  enum Fields : int { now, next, source };
  static constexpr int kFields = 3;
  static constexpr std::array kPhases{Phase{
      .writes = fields(next), .reads = fields(source), .neighbours = fields(now), .reach = layers(1, Dimensions)}};
  static constexpr std::array kSwaps{Swap{now, next}};
  static constexpr std::array kSwept{0};
  static constexpr int kWatched = now;

  T weight = T{1} / T{2 * Dimensions};

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    T about = cell.get(now, -1, 0, 0) + cell.get(now, 1, 0, 0);
    if constexpr (Dimensions > 1) about += cell.get(now, 0, -1, 0) + cell.get(now, 0, 1, 0);
    if constexpr (Dimensions > 2) about += cell.get(now, 0, 0, -1) + cell.get(now, 0, 0, 1);
    cell.set(next, (about + cell.get(source)) * weight);
  }
};

/// Fields of jacobi(): set and get these.
inline constexpr int kJacobiSolution = 0;
inline constexpr int kJacobiSource = 2;

/// Jacobi for float or double; `dimensions` from 1 to 3, as Extent::dimensions() has it. Throws UsageError for others.
template <class T>
[[nodiscard]] StencilProgram jacobi(int dimensions);

/// The norms of the residual, source - (2 * dimensions * u - neighbours), of the solution before the last step: the
/// step changed it by so much over 2 * dimensions. For a simulation of jacobi() that has done a step since it was set.
[[nodiscard]] Norms jacobi_residual(Simulation& simulation);

/// Does so many steps, and gives for each the norms of the residual before it, added up while they are done; see
/// Simulation::step_with_changes().
[[nodiscard]] std::vector<Norms> jacobi_step_with_residuals(Simulation& simulation, std::uint64_t count);

}  // namespace headrace::grid
