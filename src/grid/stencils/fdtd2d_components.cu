#include "headrace/grid/stencils/fdtd2d.hpp"

#include "grid/stencils/program_of.hpp"

namespace headrace::grid {

template <class Value>
StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Fdtd2d<Value, true, true>>(parts) : program_of<Fdtd2d<Value, false, true>>(parts);
}

template StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
