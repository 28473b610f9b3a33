#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// Where a pass leaves cells to phases: about those that other phases than the swept ones update.
namespace headrace::grid {

/// The same cells in boxes that do not overlap.
[[nodiscard]] std::vector<Box> disjoint(std::span<const Box> boxes);
/// What of some boxes is in none of `holes`.
[[nodiscard]] std::vector<Box> outside(std::span<const Box> boxes, std::span<const Box> holes);

[[nodiscard]] bool is_swept(const StencilProgram& program, std::size_t phase);

/// Whether phases that are not swept have cells, and all of those come after the swept ones.
struct OtherPhases {
  bool any = false;
  bool after = true;
};
[[nodiscard]] OtherPhases other_phases(const StencilProgram& program);

/// SweepProgram::patches. They would not pay where they are many, or most of the domain: then there is no value either.
[[nodiscard]] std::optional<std::vector<Box>> patches_of(const StencilProgram& program, const SweepProgram& sweep,
                                                         const Extent& extent);

}  // namespace headrace::grid
