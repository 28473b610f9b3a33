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

/// The same with dispersive media, each component of E with so many values of memory: as many fields as they take.
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing,
                                                       int pole_values);
template <class Value>
[[nodiscard]] StencilProgram fdtd3d_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing,
                                                       int pole_values);

/// Leaves out the fields from `count` on, which nothing of a run writes.
[[nodiscard]] inline StencilProgram with_fields(StencilProgram program, int count) {
  const FieldSet kept = fields_from(0, count);
  program.field_count = count;
  for (Phase& phase : program.phases) {
    phase.writes = phase.writes & kept;
    phase.reads = phase.reads & kept;
    phase.neighbours = phase.neighbours & kept;
  }
  return program;
}

}  // namespace headrace::grid
