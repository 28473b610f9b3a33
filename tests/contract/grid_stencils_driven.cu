#include "tests/contract/grid_stencils.hpp"

namespace headrace::testing {

template <class T>
grid::StencilProgram growing(const Growing<T>& stencil) {
  return grid::make_stencil(stencil);
}

template <class T>
grid::StencilProgram driven(const std::vector<Driven<T>>& parts) {
  return grid::make_stencil(std::span<const Driven<T>>(parts));
}

template grid::StencilProgram growing(const Growing<float>&);
template grid::StencilProgram growing(const Growing<double>&);
template grid::StencilProgram driven(const std::vector<Driven<float>>&);
template grid::StencilProgram driven(const std::vector<Driven<double>>&);

}  // namespace headrace::testing
