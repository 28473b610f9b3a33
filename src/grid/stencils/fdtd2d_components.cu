#include "grid/stencils/fdtd2d_program.hpp"

namespace headrace::grid {

template <class Value>
StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Value, true, true>(parts) : program_of<Value, false, true>(parts);
}

template StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd2d_components_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
