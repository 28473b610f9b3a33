#include "headrace/grid/stencils/fdtd3d.hpp"

#include "grid/stencils/program_of.hpp"

namespace headrace::grid {

namespace {

template <class Value, bool Absorbing>
StencilProgram made_of(const std::vector<FdtdTables<Value>>& parts, int pole_values) {
  constexpr int kMemory = fdtd3d::first_memory(Absorbing);
  return with_fields(program_of<Fdtd3d<Value, Absorbing, true>>(parts), kMemory + 3 * pole_values);
}

}  // namespace

template <class Value>
StencilProgram fdtd3d_dispersive_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing, int pole_values) {
  return absorbing ? made_of<Value, true>(parts, pole_values) : made_of<Value, false>(parts, pole_values);
}

template StencilProgram fdtd3d_dispersive_program(const std::vector<FdtdTables<float>>&, bool, int);
template StencilProgram fdtd3d_dispersive_program(const std::vector<FdtdTables<double>>&, bool, int);

}  // namespace headrace::grid
