#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grid/flow.hpp"
#include "grid/launches.hpp"
#include "grid/layout.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/decomposition.hpp"

namespace headrace::grid {

/// One step, or several that are done in a pass.
struct Leg {
  std::size_t steps = 1;
  const SweepProgram* sweep = nullptr;  ///< Null where phases do it alone.
  /// What a pass leaves to phases, which do it before it, where it will store: they work on copies of these boxes, and
  std::vector<Box> copied;
  std::vector<Launches> patches;  ///< each step's are launched one after the other.
  Launches launches;              ///< The last leg has only what is not in its tail.
};

/// All that a part launches between two exchanges.
struct CyclePlan {
  std::vector<Leg> body;
  Launches border;    ///< The tail of the last leg, where neighbours need it,
  Launches interior;  ///< and elsewhere.
};

/// The plans of one part for cycles of 1, 2, ... steps.
struct PartPlans {
  std::vector<CyclePlan> amid;  ///< More cycles come in the same call,
  std::vector<CyclePlan> last;  ///< or none: then every field is left as phases alone leave it.
};

using Restrictions = std::vector<std::optional<std::vector<Box>>>;

[[nodiscard]] PartPlans plan_part(const Decomposition& decomposition, std::size_t part, const Flow& flow,
                                  const PartLayout& layout, const StencilProgram& program, Device device);

/// Throws UsageError unless these boxes can restrict a phase.
void require_restriction(const StencilProgram& program, int phase, const std::vector<Box>& boxes, const Extent& extent);

}  // namespace headrace::grid
