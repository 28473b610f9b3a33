#include "tests/contract/grid_stencils.hpp"

namespace headrace::testing {

template <class T>
grid::StencilProgram skewed(T share) {
  return grid::make_stencil(Skewed<T>{share});
}

template <class T>
grid::StencilProgram driven(const std::vector<Driven<T>>& parts) {
  return grid::make_stencil(std::span<const Driven<T>>(parts));
}

template grid::StencilProgram skewed(float);
template grid::StencilProgram skewed(double);
template grid::StencilProgram driven(const std::vector<Driven<float>>&);
template grid::StencilProgram driven(const std::vector<Driven<double>>&);

}  // namespace headrace::testing
