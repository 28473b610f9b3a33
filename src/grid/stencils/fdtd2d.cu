#include "headrace/grid/stencils/fdtd2d.hpp"

#include <span>

#include "grid/fdtd/fdtd_program.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

namespace {

template <class Value, bool Absorbing, bool PerComponent>
StencilProgram program_of(const std::vector<FdtdTables<Value>>& parts) {
  using Stencil = Fdtd2d<Value, Absorbing, PerComponent>;
  static_assert(sizeof(Stencil) == sizeof(FdtdTables<Value>), "what set_stencil_bytes() is given are its tables");
  std::vector<Stencil> stencils;
  for (const FdtdTables<Value>& tables : parts) stencils.push_back(Stencil{tables});
  return make_stencil(std::span<const Stencil>(stencils));
}

}  // namespace

template <class Value>
StencilProgram fdtd2d_program(const std::vector<FdtdTables<Value>>& parts, bool absorbing, bool per_component) {
  if (per_component) return absorbing ? program_of<Value, true, true>(parts) : program_of<Value, false, true>(parts);
  return absorbing ? program_of<Value, true, false>(parts) : program_of<Value, false, false>(parts);
}

template StencilProgram fdtd2d_program(const std::vector<FdtdTables<float>>&, bool, bool);
template StencilProgram fdtd2d_program(const std::vector<FdtdTables<double>>&, bool, bool);

}  // namespace headrace::grid
