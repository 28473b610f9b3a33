#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grid/flow.hpp"
#include "grid/launches.hpp"
#include "grid/layout.hpp"
#include "grid/wave.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/decomposition.hpp"

namespace headrace::grid {

/// One step, or several steps that one pass does.
struct Leg {
  std::size_t steps = 1;
  const SweepProgram* sweep = nullptr;  ///< Null if phases do the leg alone.
  /// The phases do the cells that the pass leaves out. They run before it, where it will store, on copies of these
  /// boxes.
  std::vector<Box> copied;
  std::vector<Launches> patches;  ///< The launches of each step in the patches, in order.
  Launches launches;              ///< In the last leg, without the tail.
};

/// Everything that a part launches between two exchanges.
struct CyclePlan {
  std::vector<Leg> body;
  Launches border;    ///< The tail of the last leg in cells that neighbours need.
  Launches interior;  ///< The tail in the other cells.
  /// All of it by phases on a CPU device, which then does nothing else in a cycle unless it adds up changes.
  Wave wave;

  [[nodiscard]] std::size_t steps() const noexcept {
    std::size_t all = 0;
    for (const Leg& leg : body) all += leg.steps;
    return all;
  }
};

/// The plans of one part for cycles of 1, 2, ... steps.
struct PartPlans {
  std::vector<CyclePlan> amid;  ///< For cycles that other cycles of the same call follow.
  std::vector<CyclePlan> last;  ///< For the last cycle of a call, which leaves every field as phases alone leave it.
};

using Restrictions = std::vector<std::optional<std::vector<Box>>>;

/// @param waves  whether cycles are to have waves
[[nodiscard]] PartPlans plan_part(const Decomposition& decomposition, std::size_t part, const Flow& flow,
                                  const PartLayout& layout, const StencilProgram& program, Device device, bool waves);

/// Throws UsageError if a phase cannot be restricted to these boxes.
void require_restriction(const StencilProgram& program, int phase, const std::vector<Box>& boxes, const Extent& extent);

}  // namespace headrace::grid
