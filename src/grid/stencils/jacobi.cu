#include "headrace/grid/stencils/jacobi.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace::grid {

template <class T>
StencilProgram jacobi(int dimensions) {
  if (dimensions == 1) return make_stencil(Jacobi<T, 1>{});
  if (dimensions == 2) return make_stencil(Jacobi<T, 2>{});
  if (dimensions == 3) return make_stencil(Jacobi<T, 3>{});
  throw UsageError(fmt::format("jacobi solves in 1 to 3 dimensions, not in {}", dimensions));
}

template StencilProgram jacobi<float>(int);
template StencilProgram jacobi<double>(int);

Norms jacobi_residual(Simulation& simulation) {
  constexpr int kBefore = 1;
  Norms change = simulation.norms_of_difference(kJacobiSolution, kBefore);
  const double diagonal = 2.0 * simulation.decomposition().extent().dimensions();
  return {.maximum = diagonal * change.maximum, .two = diagonal * change.two};
}

}  // namespace headrace::grid
