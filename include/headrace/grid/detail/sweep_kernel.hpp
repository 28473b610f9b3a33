#pragma once

#include <bit>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/sweep.hpp"
#include "headrace/grid/detail/sweep_chain.hpp"
#include "headrace/grid/detail/sweep_region.hpp"
#include "headrace/grid/detail/sweep_strip.hpp"
#include "headrace/grid/detail/sweep_tasks.hpp"
#include "headrace/grid/detail/sweep_team.hpp"
#include "headrace/grid/detail/sweep_window.hpp"

namespace headrace::grid {

/// `Steps` steps of the swept phases over the boxes of a region. A team of neighbouring threads processes the rows of a
/// strip. Strips overlap by what is read beyond them, and so do the runs of rows that a box is cut into. On a CPU
/// device a team is one thread with many cells.
/// @tparam Watched  also takes a SweepWatch, for stencils with `static constexpr int kWatched`: a field that each step
/// swaps with another
template <class Stencil, int Steps, bool Watched = false>
struct SweepKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr bool kFlushToZero = headrace::detail::flushes_to_zero<Stencil>();
  static constexpr int kThreadsMax = kSweepThreads;
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;
  /// The registers of the window on CUDA: 16 bytes for each row of each field that the pass touches.
  static constexpr int kWindowRegisters =
      std::popcount(Plan::loaded().mask | Plan::overwritten().mask) * SweepWindow<Stencil, Steps, false>::kDepth * 4;
  /// If the rest of a pass fits beside the window, a multiprocessor holds 12 warps, even though a row is loaded ahead:
  /// up to 168 registers a thread. The built-in stencils do so without spilling (ptxas for sm_90, CUDA 13.0).
  static constexpr int kBlocksMin = kWindowRegisters > 128 ? 1 : 3;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepChain& chain = {}, const SweepWatch& watch = {}) {
    using Team = SweepTeam<Stencil, Steps, Watched, Group>;
    std::uint32_t number = group.item();
    std::uint32_t block = group.block();
    while (block >= region.blocks[number]) block -= region.blocks[number++];
    const bool chained = chain.done != nullptr;
    if (chained) group.launch_dependents();
    const SweepTasks tasks(region.boxes[number], region.rows[number], Team::columns());
    // Taking the first thread's team tells nvcc that a whole team takes the same path, so it omits code for divergence.
    const std::uint32_t team = group.team_from(group.team(), 0);
    const std::int64_t teams = group.size() / Group::kTeam;
    for (std::int64_t task = block * teams + team; task < tasks.count(); ++task) {
      const StripPlace place = chained ? tasks.row_by_row(task) : tasks.edge_first(task);
      if (chained) chain.await(group, tasks, task);
      const auto slot = static_cast<std::uint32_t>(task) % ChangeSums::kSlots;
      const SweepAsks asks = Group::kLanes == 1 ? Team::asks_for(place, region) : SweepAsks::cells;
      if (asks == SweepAsks::nothing) {
        go<SweepAsks::nothing>(group, stencil, places, region, watch, place, slot);
      } else if (asks == SweepAsks::rows) {
        go<SweepAsks::rows>(group, stencil, places, region, watch, place, slot);
      } else {
        go<SweepAsks::cells>(group, stencil, places, region, watch, place, slot);
      }
      if (chained) chain.tell(group, task);
      if constexpr (Group::kLanes == 1) return;  // no team has a second task
    }
  }

 private:
  template <SweepAsks Asks, class Group>
  HEADRACE_HD static void go(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                             const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                             std::uint32_t slot) {
    if constexpr (Asks == SweepAsks::cells || Group::kLanes == 1) {
      SweepStrip<Stencil, Steps, Watched, Asks, Group> strip{group, swept_part_of(stencil), places, region, place,
                                                             watch};
      strip.go();
      if constexpr (Watched) strip.add_up(slot);
    }
  }
};

}  // namespace headrace::grid
