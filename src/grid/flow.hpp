#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// Derives data dependencies from what the phases of a stencil read and write.
namespace headrace::grid {

/// How far beyond its owned cells a part must update each phase, so that all owned cells are correct after this many
/// steps without an exchange.
struct Cycle {
  std::vector<std::vector<Layers>> beyond;  ///< The layers beyond, for each step and phase.
  std::vector<Layers> kept;                 ///< For each step, the layers still needed after it.
};

struct Flow {
  std::vector<Cycle> cycles;              ///< Cycles of 1, 2, ... steps, up to the redundant number.
  std::array<Layers, kFieldsMax> needed;  ///< For each field, the layers needed at the start of the longest cycle.
  FieldSet exchanged;                     ///< The fields needed there that change.
  Layers ghosts;                          ///< The widest layers that any field needs.
  Layers edge;                            ///< The furthest reach of any phase.
  std::size_t tail = 0;                   ///< The first of the phases that read no neighbour's value which one of them
                                          ///< writes; they can run for some cells first and for others later.
  Layers tail_reach;                      ///< The furthest reach of a phase in the tail.
};

[[nodiscard]] Flow flow_of(const StencilProgram& program, int redundant);

}  // namespace headrace::grid
