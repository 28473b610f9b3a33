#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grid/layout.hpp"
#include "headrace/grid/simulation.hpp"

/// Decides whether a domain is larger than its device's memory, and how its slabs lie there.
namespace headrace::grid {

/// Removes the passes and vectors that must not be used. With `slabs`, a pass may do as many steps as a visit.
void choose_kernels(StencilProgram& program, const SimulationOptions& options, const Decomposition& decomposition,
                    bool host_cores, bool slabs);

/// The budget for a domain that does not fit on its device, or nothing if it fits. Throws UsageError if
/// SimulationOptions::device_memory_bytes requests slabs for a domain that cannot have any: one in several parts, over
/// ranks, in mode `resident`, or of a single row.
[[nodiscard]] std::optional<std::size_t> slab_budget(const Decomposition& decomposition,
                                                     const std::vector<Device>& devices, const StencilProgram& program,
                                                     const SimulationOptions& options);

/// The axis along which slabs follow each other: the slowest.
[[nodiscard]] constexpr std::size_t slab_axis(const Extent& extent) noexcept {
  return static_cast<std::size_t>(extent.dimensions() - 1);
}
/// The layout of a slab of one row, or one plane, on the device.
[[nodiscard]] PartLayout layout_of_slab(const StencilProgram& program, const Extent& extent);

}  // namespace headrace::grid
