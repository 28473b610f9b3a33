#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// What follows from what the phases of a stencil read and write.
namespace headrace::grid {

/// How far beyond what a part owns each phase must update, so that after so many steps without an exchange all that the
/// part owns is right.
struct Cycle {
  std::vector<std::vector<Layers>> beyond;  ///< The layers beyond, for each step and each phase of it.
  std::vector<Layers> kept;                 ///< After a step, how far beyond it anything is still needed.
};

struct Flow {
  std::vector<Cycle> cycles;              ///< The cycles of 1, 2, ... steps; the last has as many as are redundant.
  std::array<Layers, kFieldsMax> needed;  ///< By field, about what is owned, at the start of the longest.
  FieldSet exchanged;                     ///< Those that are needed there and change.
  Layers ghosts;                          ///< The widest of all.
  Layers edge;                            ///< The furthest that any phase reads.
  std::size_t tail = 0;                   ///< The phases from here on read nothing at neighbours that one of them
                                          ///< writes: they can be done for some cells first and for others later.
  Layers tail_reach;                      ///< The furthest that one of those reads.
};

[[nodiscard]] Flow flow_of(const StencilProgram& program, int redundant);

}  // namespace headrace::grid
