#pragma once

#include <cstddef>
#include <vector>

#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// Splits a cycle into passes: the number of steps of each, or 0 for a step that phases do alone. The split depends on
/// the program alone, so all parts agree on where their fields are.
[[nodiscard]] std::vector<std::size_t> legs_of(const StencilProgram& program, std::size_t steps, bool last_of_call);

/// Whether the other phases, if they have cells, can be launched after a complete pass.
[[nodiscard]] bool others_follow(const StencilProgram& program, const SweepProgram& sweep);

}  // namespace headrace::grid
