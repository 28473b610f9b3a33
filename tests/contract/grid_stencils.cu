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

template <class T>
grid::StencilProgram coupled(T share) {
  return grid::make_stencil(Coupled<T>{share});
}

grid::StencilProgram rotating() { return grid::make_stencil(Rotating{}); }

template <class T>
grid::StencilProgram growing(const Growing<T>& stencil) {
  return grid::make_stencil(stencil);
}

template <class T>
grid::StencilProgram driven(const std::vector<Driven<T>>& parts) {
  return grid::make_stencil(std::span<const Driven<T>>(parts));
}

template grid::StencilProgram skewed(float);
template grid::StencilProgram skewed(double);
template grid::StencilProgram leaning(float);
template grid::StencilProgram leaning(double);
template grid::StencilProgram coupled(float);
template grid::StencilProgram coupled(double);
template grid::StencilProgram growing(const Growing<float>&);
template grid::StencilProgram growing(const Growing<double>&);
template grid::StencilProgram driven(const std::vector<Driven<float>>&);
template grid::StencilProgram driven(const std::vector<Driven<double>>&);

}  // namespace headrace::testing
