#include "grid/stencils/fdtd2d_te.hpp"

#include "grid/stencils/program_of.hpp"

namespace headrace::grid {

template <class Value>
StencilProgram fdtd2d_te_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Fdtd2dTe<Value, true>>(parts) : program_of<Fdtd2dTe<Value, false>>(parts);
}

template StencilProgram fdtd2d_te_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd2d_te_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
