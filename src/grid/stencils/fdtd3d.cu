#include "headrace/grid/stencils/fdtd3d.hpp"

#include <span>

#include "grid/stencils/fdtd_program.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

namespace {

template <class Value, bool Absorbing>
StencilProgram program_of(const std::vector<FdtdTables<Value>>& parts) {
  using Stencil = Fdtd3d<Value, Absorbing>;
  static_assert(sizeof(Stencil) == sizeof(FdtdTables<Value>), "what set_stencil_bytes() is given are its tables");
  std::vector<Stencil> stencils;
  for (const FdtdTables<Value>& tables : parts) stencils.push_back(Stencil{tables});
  return make_stencil(std::span<const Stencil>(stencils));
}

}  // namespace

template <class Value>
StencilProgram fdtd3d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing) {
  return absorbing ? program_of<Value, true>(parts) : program_of<Value, false>(parts);
}

template StencilProgram fdtd3d_program(const std::vector<FdtdTables<float>>&, bool);
template StencilProgram fdtd3d_program(const std::vector<FdtdTables<double>>&, bool);

}  // namespace headrace::grid
