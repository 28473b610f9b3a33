#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "grid/layout.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

/// Cuts the boxes of a pass into tasks: strips of columns and runs of rows.
namespace headrace::grid {

/// Boxes of a part as the tasks of one kernel.
struct SweepCut {
  SweepRegion region;
  LaunchShape shape;
  std::size_t chained = 0;  ///< Number of tasks if passes are chained: see SweepChain.
};

/// Sets the boxes of a region, and the blocks and rows of each, for a CUDA device. Teams start together and take
/// equally long, so the device does its tasks in waves. A last wave of few tasks takes at least half as long as a full
/// one, so the run length minimises the number of waves times the rows of each.
/// @param boxes  SweepRegion::kBoxesMax at most, all with cells
/// @param halo  how far the pass reads beyond what it stores
/// @param blocks_at_once  blocks of kSweepThreads threads of the pass's kernel that the device holds; at least 1
/// @param blocks_beside  blocks of other launches at the same time. A pass of one wave leaves them room if it can;
/// otherwise they would have none until its end
[[nodiscard]] LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo,
                                        const PartLayout& layout, std::uint32_t blocks_at_once,
                                        std::uint32_t blocks_beside);

/// Recuts a box for chained passes, which have no waves. `cut` was made for waves of the same kernel. The run length
/// minimises the number of tasks times the rows of each, with more tasks than the device does at once. Leaves the cut
/// as it is if runs would have to be so short that waiting for neighbouring tasks costs more than waves do.
void cut_into_chain(SweepCut& cut, const Box& box, const Layers& halo, const PartLayout& layout,
                    std::uint32_t blocks_at_once);

/// The same for a CPU device, with one item for each box.
[[nodiscard]] LaunchShape cut_into_items(SweepRegion& region, std::span<const Box> boxes, const PartLayout& layout);

}  // namespace headrace::grid
