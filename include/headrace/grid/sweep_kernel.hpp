#pragma once

#include <bit>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/sweep.hpp"
#include "headrace/grid/sweep_chain.hpp"
#include "headrace/grid/sweep_region.hpp"
#include "headrace/grid/sweep_strip.hpp"
#include "headrace/grid/sweep_tasks.hpp"
#include "headrace/grid/sweep_team.hpp"
#include "headrace/grid/sweep_window.hpp"

namespace headrace::grid {

/// `Steps` steps of the swept phases over the boxes of a region. A team of threads goes along the rows of a strip,
/// neighbouring threads beside each other; strips overlap by what is read beyond them, and so do the runs of rows that
/// a box is cut into. A CPU device's team is one thread, with many cells.
/// @tparam Watched  for stencils that have `static constexpr int kWatched`, a field that each step swaps with another:
/// the kernel takes a SweepWatch as well
/// @tparam Chained  the kernel takes a SweepChain, before the SweepWatch, and a region of one box
template <class Stencil, int Steps, bool Watched = false, bool Chained = false>
struct SweepKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr int kThreadsMax = kSweepThreads;
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;
  /// The registers of the window on CUDA: 16 bytes of each row of each field that the pass touches.
  static constexpr int kWindowRegisters =
      std::popcount(Plan::loaded().mask | Plan::overwritten().mask) * SweepWindow<Stencil, Steps, false>::kDepth * 4;
  /// Where the rest of a pass fits beside them, a multiprocessor holds 12 warps, though a row is loaded ahead: up to
  /// 168 registers a thread. Those that ship do so without spilling (ptxas for sm_90, CUDA 13.0).
  static constexpr int kBlocksMin = kWindowRegisters > 128 ? 1 : 3;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region)
    requires(!Watched && !Chained)
  {
    one_by_one(group, stencil, places, region, {});
  }
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepWatch& watch)
    requires(Watched && !Chained)
  {
    one_by_one(group, stencil, places, region, watch);
  }
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepChain& chain)
    requires(!Watched && Chained)
  {
    in_chain(group, stencil, places, region, chain, {});
  }
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepChain& chain, const SweepWatch& watch)
    requires(Watched && Chained)
  {
    in_chain(group, stencil, places, region, chain, watch);
  }

 private:
  template <class Group>
  using Team = SweepTeam<Stencil, Steps, Watched, Group>;

  template <class Group>
  HEADRACE_HD static void one_by_one(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                                     const SweepRegion& region, const SweepWatch& watch) {
    std::uint32_t number = group.item();
    std::uint32_t block = group.block();
    while (block >= region.blocks[number]) block -= region.blocks[number++];
    const SweepTasks tasks(region.boxes[number], region.rows[number], Team<Group>::columns());
    // The first thread's team: nvcc then knows that all of a team go the same way, and leaves out what others need.
    const std::uint32_t team = group.team_from(group.team(), 0);
    const std::int64_t teams = group.size() / Group::kTeam;
    for (std::int64_t task = block * teams + team; task < tasks.count(); ++task) {
      do_task(group, stencil, places, region, watch, tasks.edge_first(task), task);
      if constexpr (Group::kLanes == 1) return;  // no team has another
    }
  }

  template <class Group>
  HEADRACE_HD static void in_chain(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                                   const SweepRegion& region, const SweepChain& chain, const SweepWatch& watch) {
    constexpr Layers kHalo = Plan::halo();
    constexpr std::int32_t kReach[2] = {
        static_cast<std::int32_t>(kHalo.low[0] > kHalo.high[0] ? kHalo.low[0] : kHalo.high[0]),
        static_cast<std::int32_t>(kHalo.low[1] > kHalo.high[1] ? kHalo.low[1] : kHalo.high[1])};
    constexpr TeamColumns kColumns = Team<Group>::columns();
    group.launch_dependents();
    const SweepTasks tasks(region.boxes[0], region.rows[0], kColumns);
    const std::uint32_t team = group.team_from(group.team(), 0);
    const std::int64_t teams = group.size() / Group::kTeam;
    for (std::int64_t turn = group.block() * teams + team; turn < tasks.count(); ++turn) {
      const std::int64_t task = tasks.in_order(turn, chain.order);
      const StripPlace place = tasks.row_by_row(task);
      if (!chain.await(group, tasks, task, place, kReach, kColumns)) return;
      do_task(group, stencil, places, region, watch, place, task);
      chain.template tell<Value>(group, task, places, region, place, kReach, Plan::stored());
      if constexpr (Group::kLanes == 1) return;  // no team has another
    }
  }

  template <class Group>
  HEADRACE_HD static void do_task(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                                  const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                                  std::int64_t task) {
    const auto slot = static_cast<std::uint32_t>(task) % ChangeSums::kSlots;
    const SweepAsks asks = Group::kLanes == 1 ? Team<Group>::asks_for(place, region) : SweepAsks::cells;
    if (asks == SweepAsks::nothing) {
      go<SweepAsks::nothing>(group, stencil, places, region, watch, place, slot);
    } else if (asks == SweepAsks::rows) {
      go<SweepAsks::rows>(group, stencil, places, region, watch, place, slot);
    } else {
      go<SweepAsks::cells>(group, stencil, places, region, watch, place, slot);
    }
  }

  template <SweepAsks Asks, class Group>
  HEADRACE_HD static void go(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                             const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                             std::uint32_t slot) {
    if constexpr (Asks == SweepAsks::cells || Group::kLanes == 1) {
      SweepStrip<Stencil, Steps, Watched, Asks, Group> strip{group, stencil, places, region, place, watch};
      strip.go();
      if constexpr (Watched) strip.add_up(slot);
    }
  }
};

}  // namespace headrace::grid
