#include "grid/stencils/fdtd3d_program.hpp"

namespace headrace::grid {

template <class Value>
StencilProgram fdtd3d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Value, true>(parts) : program_of<Value, false>(parts);
}

template StencilProgram fdtd3d_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd3d_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
