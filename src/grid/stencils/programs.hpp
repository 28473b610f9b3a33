#pragma once

#include "headrace/grid/stencil.hpp"

/// The part of the built-in stencils that nvcc compiles. It does not compile code that formats messages.
namespace headrace::grid::detail {

/// `dimensions` is 1 to 3.
template <class T>
[[nodiscard]] StencilProgram heat_program(int dimensions, T factor);
template <class T>
[[nodiscard]] StencilProgram jacobi_program(int dimensions);

}  // namespace headrace::grid::detail
