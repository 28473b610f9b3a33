#include "tests/contract/grid_stencils.hpp"

namespace headrace::testing {

template <class T>
grid::StencilProgram skewed(T share) {
  return grid::make_stencil(Skewed<T>{share});
}

template <class T>
grid::StencilProgram leaning(T share) {
  return grid::make_stencil(Leaning<T>{share});
}

template grid::StencilProgram skewed(float);
template grid::StencilProgram skewed(double);
template grid::StencilProgram leaning(float);
template grid::StencilProgram leaning(double);

}  // namespace headrace::testing
