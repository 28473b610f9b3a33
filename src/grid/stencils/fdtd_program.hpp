#pragma once

#include <vector>

#include "headrace/grid/detail/stencils/fdtd_points.hpp"
#include "headrace/grid/stencil.hpp"

/// Finite differences in the time domain as programs of a Simulation: each part with tables of its own, with absorbing
/// layers or without, in two dimensions with coefficients of Hx and Hy alike or per component. Made where nvcc
/// compiles, so that they have kernels for CUDA devices too.
namespace headrace::grid {

template <class Value>
[[nodiscard]] StencilProgram fdtd2d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);
template <class Value>
[[nodiscard]] StencilProgram fdtd3d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);

}  // namespace headrace::grid
