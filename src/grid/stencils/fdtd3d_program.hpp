#pragma once

#include <span>
#include <vector>

#include "grid/stencils/fdtd_program.hpp"
#include "headrace/grid/stencil.hpp"
#include "headrace/grid/stencils/fdtd3d.hpp"

namespace headrace::grid {

/// The program of parts with these tables.
template <class Value, bool Absorbing, bool Dispersive = false>
StencilProgram program_of(const std::vector<FdtdTables<Value>>& parts) {
  using Stencil = Fdtd3d<Value, Absorbing, Dispersive>;
  static_assert(sizeof(Stencil) == sizeof(FdtdTables<Value>),
                "a stencil holds only its tables, as set_stencil_bytes() assumes");
  std::vector<Stencil> stencils;
  for (const FdtdTables<Value>& tables : parts) stencils.push_back(Stencil{tables});
  return make_stencil(std::span<const Stencil>(stencils));
}

}  // namespace headrace::grid
