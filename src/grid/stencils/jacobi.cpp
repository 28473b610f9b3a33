#include "headrace/grid/stencils/jacobi.hpp"

#include <fmt/format.h>

#include "grid/stencils/programs.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

template <class T>
StencilProgram jacobi(int dimensions) {
  if (dimensions < 1 || dimensions > 3) {
    throw UsageError(fmt::format("jacobi solves in 1 to 3 dimensions, not in {}", dimensions));
  }
  return detail::jacobi_program<T>(dimensions);
}

template StencilProgram jacobi<float>(int);
template StencilProgram jacobi<double>(int);

Norms jacobi_residual(Simulation& simulation) {
  constexpr int kBefore = 1;
  const Norms change = simulation.norms_of_difference(kJacobiSolution, kBefore);
  const double diagonal = 2.0 * simulation.decomposition().extent().dimensions();
  return {.maximum = diagonal * change.maximum, .two = diagonal * change.two};
}

}  // namespace headrace::grid
