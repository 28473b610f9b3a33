#pragma once

#include <bit>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/sweep.hpp"
#include "headrace/grid/sweep_meeting.hpp"
#include "headrace/grid/sweep_region.hpp"
#include "headrace/grid/sweep_strip.hpp"
#include "headrace/grid/sweep_window.hpp"

namespace headrace::grid {

/// `Steps` steps of the swept phases over the boxes of a region. A team of threads goes along the rows of a strip,
/// neighbouring threads beside each other; strips overlap by what is read beyond them, and so do the runs of rows that a
/// box is cut into. A CPU device's team is one thread, with many cells. Blocks begin with the first boxes, which are the
/// border where neighbours wait for it.
/// @tparam Watched  with a SweepWatch as well, for stencils that have `static constexpr int kWatched`: a field that
/// each step swaps with another
template <class Stencil, int Steps, bool Watched = false>
struct SweepKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr int kThreadsMax = 128;
  static constexpr bool kStartsEarly = true;
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;
  /// Of the window on CUDA: 16 bytes of each row of each field that the pass touches.
  static constexpr int kWindowRegisters =
      std::popcount(Plan::loaded().mask | Plan::overwritten().mask) * SweepWindow<Stencil, Steps, false>::kDepth * 4;
  /// Where the rest of a pass fits beside them, a multiprocessor holds 12 warps, though a row is loaded ahead: up to
  /// 168 registers a thread. Those that ship do so without spilling (ptxas for sm_90, CUDA 13.0).
  static constexpr int kBlocksMin = kWindowRegisters <= 72 ? 4 : kWindowRegisters <= 128 ? 3 : 1;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepWatch& watch = {}) {
    group.await_earlier();
    const bool meets = region.exchange.meeting != nullptr;
    if (meets) SweepMeeting<Stencil>::begin(group, region.exchange);
    // Nothing but this number is kept while a strip is done: registers are what windows are made of.
    for (std::uint32_t number = group.block();; number += group.block_count()) {
      SweepTask task;
      if (!find(group, region, number, task)) return;
      if (task.is_border && !SweepMeeting<Stencil>::hear_pushed(group, region.exchange)) return;
      if (task.some) {
        SweepStrip<Stencil, Steps, Watched, Group> strip{group, stencil, places, region, watch.scale};
        strip.low[0] = task.cells.low[0];
        strip.high[0] = task.cells.low[0] + task.cells.size[0];
        strip.low[1] = task.cells.low[1];
        strip.high[1] = task.cells.low[1] + task.cells.size[1];
        strip.z = task.cells.low[2];
        strip.x = task.begin + static_cast<std::int32_t>(group.team_rank()) * Window<Group>::kCells;
        strip.end = task.end;
        strip.go();
        if constexpr (Watched) strip.add_up(watch.sums, task.slot);
      }
      if (meets && !finish(group, places, region, number)) return;
    }
  }

 private:
  template <class Group>
  using Window = SweepWindow<Stencil, Steps, (Group::kLanes > 1)>;

  /// How a box is cut into strips and runs of rows.
  struct Cut {
    std::int32_t first;  ///< The column where strips begin,
    std::int32_t width;  ///< and how wide they are.
    std::int32_t rows;   ///< Of a run.
    std::int32_t strips;
    std::int32_t runs;
    std::int64_t tasks;
  };

  /// Cells that a strip has beside what it stores: whole units.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t below() noexcept {
    return round_up(static_cast<std::int32_t>(Plan::halo().low[0]), Window<Group>::kUnit);
  }
  template <class Group>
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t above() noexcept {
    return round_up(static_cast<std::int32_t>(Plan::halo().high[0]), Window<Group>::kUnit);
  }

  /// Strips begin at whole units of the part, as its rows do in memory.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static Cut cut_of(const SweepRegion& region, std::int32_t b) {
    constexpr auto kSpan = static_cast<std::int32_t>(Group::kTeam) * Window<Group>::kCells;
    constexpr std::int32_t kStored = kSpan - below<Group>() - above<Group>();
    static_assert(kStored > 0, "so many steps reach further than a strip is wide");
    const LocalBox& box = region.boxes[b];
    Cut cut{};
    cut.first = box.low[0] - positive_modulo(box.low[0], Window<Group>::kUnit);
    const std::int32_t across = box.low[0] + box.size[0] - cut.first;
    cut.strips = (across + kStored - 1) / kStored;
    cut.width = round_up((across + cut.strips - 1) / cut.strips, Window<Group>::kUnit);
    cut.rows = region.rows >> region.finer[b];
    cut.runs = (box.size[1] + cut.rows - 1) / cut.rows;
    cut.tasks = std::int64_t{cut.strips} * cut.runs * box.size[2];
    return cut;
  }

  /// As many tasks as a block has teams are a chunk, and chunks are numbered through all boxes. False behind the last.
  template <class Group>
  [[nodiscard]] HEADRACE_HD_APART static bool find(const Group& group, const SweepRegion& region, std::uint32_t number,
                                                   SweepTask& to) {
    const std::int64_t teams = group.size() / Group::kTeam;
    auto chunk = std::int64_t{number};
    for (std::int32_t b = 0; b < region.count; ++b) {
      const Cut cut = cut_of<Group>(region, b);
      const std::int64_t chunks = (cut.tasks + teams - 1) / teams;
      if (chunk >= chunks) {
        chunk -= chunks;
        continue;
      }
      const std::int64_t task = chunk * teams + group.team();
      const LocalBox& box = region.boxes[b];
      const std::int32_t low = cut.first + static_cast<std::int32_t>(task % cut.strips) * cut.width;
      const std::int32_t row = box.low[1] + static_cast<std::int32_t>(task / cut.strips % cut.runs) * cut.rows;
      to.some = task < cut.tasks;
      to.is_border = static_cast<std::uint32_t>(b) < region.exchange.boxes;
      to.slot = static_cast<std::uint32_t>(task) % ChangeSums::kSlots;
      to.cells.low[0] = low < box.low[0] ? box.low[0] : low;
      to.cells.size[0] = smaller(low + cut.width, box.low[0] + box.size[0]) - to.cells.low[0];
      to.cells.low[1] = row;
      to.cells.size[1] = smaller(cut.rows, box.low[1] + box.size[1] - row);
      to.cells.low[2] = box.low[2] + static_cast<std::int32_t>(task / cut.strips / cut.runs);
      to.cells.size[2] = 1;
      to.begin = low - below<Group>();
      to.end = low + cut.width + above<Group>();
      return true;
    }
    return false;
  }

  /// After a chunk: pushes it, where it is of the border. False where the block must leave.
  template <class Group>
  [[nodiscard]] HEADRACE_HD_APART static bool finish(const Group& group, const SweepPlaces& places,
                                                     const SweepRegion& region, std::uint32_t number) {
    SweepTask task;
    if (!find(group, region, number, task) || !task.is_border || region.exchange.cycle == 0) return true;
    const std::int64_t teams = group.size() / Group::kTeam;
    std::int64_t chunks = 0;
    for (std::uint32_t b = 0; b < region.exchange.boxes; ++b) {
      chunks += (cut_of<Group>(region, static_cast<std::int32_t>(b)).tasks + teams - 1) / teams;
    }
    return SweepMeeting<Stencil>::push(group, places, region.exchange, task, chunks);
  }

  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t round_up(std::int32_t value, std::int32_t unit) noexcept {
    return (value + unit - 1) / unit * unit;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t positive_modulo(std::int32_t value,
                                                                          std::int32_t unit) noexcept {
    return (value % unit + unit) % unit;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }
};

}  // namespace headrace::grid
