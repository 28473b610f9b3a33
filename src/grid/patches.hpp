#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// Finds the cells that a pass leaves to phases: those around cells that other than the swept phases update.
namespace headrace::grid {

/// The same cells in boxes that do not overlap.
[[nodiscard]] std::vector<Box> disjoint(std::span<const Box> boxes);
/// The cells of `boxes` that are in none of `holes`.
[[nodiscard]] std::vector<Box> outside(std::span<const Box> boxes, std::span<const Box> holes);

[[nodiscard]] bool is_swept(const StencilProgram& program, std::size_t phase);

/// Whether phases that are not swept have cells, and whether all of those come after the swept ones.
struct OtherPhases {
  bool any = false;
  bool after = true;
};
[[nodiscard]] OtherPhases other_phases(const StencilProgram& program);

/// Computes SweepProgram::patches. Returns nothing if patches would not pay: if they are many, or most of the domain.
[[nodiscard]] std::optional<std::vector<Box>> patches_of(const StencilProgram& program, const SweepProgram& sweep,
                                                         const Extent& extent);

}  // namespace headrace::grid
