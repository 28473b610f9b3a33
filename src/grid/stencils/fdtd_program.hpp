#pragma once

#include <vector>

#include "headrace/grid/detail/stencils/fdtd_points.hpp"
#include "headrace/grid/stencil.hpp"

/// FDTD as programs of a Simulation. Each part has its own tables, with or without absorbing layers; with Ez in two
/// dimensions Hx and Hy have the same coefficients, or coefficients per component. Compiled by nvcc, so that the
/// programs also have kernels for CUDA devices.
namespace headrace::grid {

template <class Value>
[[nodiscard]] StencilProgram fdtd2d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_te_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);
template <class Value>
[[nodiscard]] StencilProgram fdtd3d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing);

/// The same with dispersive media. Each component of E has `pole_values` values of memory, each in its own field.
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing,
                                                       int pole_values);
template <class Value>
[[nodiscard]] StencilProgram fdtd2d_te_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing,
                                                          int pole_values);
template <class Value>
[[nodiscard]] StencilProgram fdtd3d_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing,
                                                       int pole_values);

/// Drops the fields from `count` on, which a run never writes.
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
