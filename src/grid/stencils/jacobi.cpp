#include "headrace/grid/stencils/jacobi.hpp"

#include <fmt/format.h>

#include "grid/stencils/programs.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

template <class T>
StencilProgram jacobi(int dimensions) {
  if (dimensions < 1 || dimensions > 3) {
    throw UsageError(fmt::format("a Jacobi stencil has 1 to 3 dimensions, not {}", dimensions));
  }
  return detail::jacobi_program<T>(dimensions);
}

template StencilProgram jacobi<float>(int);
template StencilProgram jacobi<double>(int);

namespace {

/// A step changes each value by the residual over the diagonal.
[[nodiscard]] Norms residual_of(const Simulation& simulation, const Norms& change) {
  const double diagonal = 2.0 * simulation.decomposition().extent().dimensions();
  return {.maximum = diagonal * change.maximum, .two = diagonal * change.two};
}

}  // namespace

Norms jacobi_residual(Simulation& simulation) {
  constexpr int kBefore = 1;
  return residual_of(simulation, simulation.norms_of_difference(kJacobiSolution, kBefore));
}

std::vector<Norms> jacobi_step_with_residuals(Simulation& simulation, std::uint64_t count) {
  std::vector<Norms> norms = simulation.step_with_changes(count);
  for (Norms& one : norms) one = residual_of(simulation, one);
  return norms;
}

}  // namespace headrace::grid
