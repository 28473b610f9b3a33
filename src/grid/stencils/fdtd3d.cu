#include "headrace/grid/stencils/fdtd3d.hpp"

#include "grid/stencils/program_of.hpp"

namespace headrace::grid {

template <class Value>
StencilProgram fdtd3d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Fdtd3d<Value, true>>(parts) : program_of<Fdtd3d<Value, false>>(parts);
}

template StencilProgram fdtd3d_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd3d_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
