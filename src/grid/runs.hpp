#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "grid/layout.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/stencil.hpp"

/// How the boxes of a pass are cut into tasks: strips of columns, and runs of rows.
namespace headrace::grid {

inline constexpr std::uint32_t kSweepThreads = 128;  ///< Of a block of a pass: four teams on CUDA.

/// Sets the boxes of a region, and how many rows a run has, so that a CUDA device is busy to the end of the pass: the
/// last box, where it is large enough, ends in runs of fewer rows. Gives a block for each four tasks.
/// @param boxes  one with cells at least; SweepRegion::kBoxesMax - 2 at most
/// @param halo  how far the pass reads beyond what it stores
/// @param blocks  that the device can have at once; 0: a CPU device, where there is nothing to balance
[[nodiscard]] LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo,
                                        const PartLayout& layout, std::uint32_t blocks);

}  // namespace headrace::grid
