#pragma once

#include <cstddef>
#include <vector>

#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// The passes of a cycle: how many steps each does, 0 for a step that phases do alone. They depend on the program
/// alone, so that parts agree where their fields are.
[[nodiscard]] std::vector<std::size_t> legs_of(const StencilProgram& program, std::size_t steps, bool last_of_call);

/// Whether other phases that have cells can be launched after a pass, for all of it.
[[nodiscard]] bool others_follow(const StencilProgram& program, const SweepProgram& sweep);

}  // namespace headrace::grid
