#pragma once

#include "headrace/grid/stencil.hpp"

/// What nvcc compiles of the stencils that ship: it does not compile what formats messages.
namespace headrace::grid::detail {

/// `dimensions` from 1 to 3.
template <class T>
[[nodiscard]] StencilProgram heat_program(int dimensions, T factor);
template <class T>
[[nodiscard]] StencilProgram jacobi_program(int dimensions);

}  // namespace headrace::grid::detail
