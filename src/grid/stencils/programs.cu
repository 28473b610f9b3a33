#include "grid/stencils/programs.hpp"

#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"

namespace headrace::grid::detail {

template <class T>
StencilProgram heat_program(int dimensions, T factor) {
  if (dimensions == 1) return make_stencil(Heat<T, 1>{factor});
  if (dimensions == 2) return make_stencil(Heat<T, 2>{factor});
  return make_stencil(Heat<T, 3>{factor});
}

template <class T>
StencilProgram jacobi_program(int dimensions) {
  if (dimensions == 1) return make_stencil(Jacobi<T, 1>{});
  if (dimensions == 2) return make_stencil(Jacobi<T, 2>{});
  return make_stencil(Jacobi<T, 3>{});
}

template StencilProgram heat_program(int, float);
template StencilProgram heat_program(int, double);
template StencilProgram jacobi_program<float>(int);
template StencilProgram jacobi_program<double>(int);

}  // namespace headrace::grid::detail
