#include "tests/contract/grid_stencils.hpp"

namespace headrace::testing {

template <class T>
grid::StencilProgram coupled(T share) {
  return grid::make_stencil(Coupled<T>{share});
}

grid::StencilProgram rotating() { return grid::make_stencil(Rotating{}); }

template grid::StencilProgram coupled(float);
template grid::StencilProgram coupled(double);

}  // namespace headrace::testing
