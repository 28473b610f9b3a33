#pragma once

#include <span>
#include <vector>

#include "grid/stencils/fdtd_program.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// The program of parts with these tables. Each kind of stencil is compiled in a separate file, because the kernel
/// compiler takes minutes for each.
template <class Stencil>
StencilProgram program_of(const std::vector<FdtdTables<typename Stencil::Value>>& parts) {
  static_assert(sizeof(Stencil) == sizeof(FdtdTables<typename Stencil::Value>),
                "a stencil holds only its tables, as set_stencil_bytes() assumes");
  std::vector<Stencil> stencils;
  for (const auto& tables : parts) stencils.push_back(Stencil{tables});
  return make_stencil(std::span<const Stencil>(stencils));
}

}  // namespace headrace::grid
