#pragma once

#include <span>

#include "grid/layout.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/stencil.hpp"

/// How the boxes of a pass are cut into tasks: strips of columns, and runs of rows.
namespace headrace::grid {

/// Sets the boxes of a region, and the blocks and rows of each. On a CUDA device the last box ends in runs of fewer
/// rows, as boxes of their own, where it is large and there is room for them: blocks come to their ends at different
/// times, and with short runs the device is busy nearly to the end of the pass.
/// @param boxes  one at least, SweepRegion::kBoxesMax at most, all with cells
/// @param halo  how far the pass reads beyond what it stores
[[nodiscard]] LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo,
                                        const PartLayout& layout, DeviceKind kind);

}  // namespace headrace::grid
