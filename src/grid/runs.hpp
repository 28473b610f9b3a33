#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "grid/layout.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

/// How the boxes of a pass are cut into tasks: strips of columns, and runs of rows.
namespace headrace::grid {

/// Boxes of a part as the tasks of one kernel.
struct SweepCut {
  SweepRegion region;
  LaunchShape shape;
  std::size_t chained = 0;  ///< So many tasks, where passes are chained: see SweepChain.
};

/// Sets the boxes of a region, and the blocks and rows of each, for a CUDA device. Teams begin together and take as
/// long, so the device does its tasks in waves, and a last one of few tasks takes half as long as one of many or more:
/// runs have as many rows as make waves times rows least.
/// @param boxes  SweepRegion::kBoxesMax at most, all with cells
/// @param halo  how far the pass reads beyond what it stores
/// @param blocks_at_once  of kSweepThreads threads, that the device holds of the pass's kernel; at least 1
/// @param blocks_beside  of other launches at the same time: what is one wave leaves them room where it can, for they
/// would have none until its end
[[nodiscard]] LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo,
                                        const PartLayout& layout, std::uint32_t blocks_at_once,
                                        std::uint32_t blocks_beside);

/// The same for a box over which passes are chained, as `cut` was for waves of the same kernel: there are none then,
/// and runs have as many rows as make tasks times rows least, with more tasks than the device does at once. Leaves it
/// as it was where runs would have to be so short for that, that waiting for those about them costs more than waves do.
void cut_into_chain(SweepCut& cut, const Box& box, const Layers& halo, const PartLayout& layout,
                    std::uint32_t blocks_at_once);

/// The same for a CPU device: an item a box.
[[nodiscard]] LaunchShape cut_into_items(SweepRegion& region, std::span<const Box> boxes, const PartLayout& layout);

}  // namespace headrace::grid
