#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grid/flow.hpp"
#include "grid/layout.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/decomposition.hpp"

namespace headrace::grid {

/// A phase over some boxes of a part.
struct PhaseLaunch {
  std::size_t phase = 0;
  Region region;
  LaunchShape shape;
};

/// All that a part launches between two exchanges.
struct CyclePlan {
  std::vector<std::vector<PhaseLaunch>> body;  ///< Of each step; of the last only what is not in its tail.
  std::vector<PhaseLaunch> border;             ///< The tail of the last step, where neighbours need it,
  std::vector<PhaseLaunch> interior;           ///< and elsewhere.
};

using Restrictions = std::vector<std::optional<std::vector<Box>>>;

/// The plans of one part for cycles of 1, 2, ... steps.
[[nodiscard]] std::vector<CyclePlan> plan_part(const Decomposition& decomposition, std::size_t part, const Flow& flow,
                                               const PartLayout& layout, const Restrictions& only);

/// Throws UsageError unless these boxes can restrict a phase.
void require_restriction(const StencilProgram& program, int phase, const std::vector<Box>& boxes, const Extent& extent);

}  // namespace headrace::grid
