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
/// neighbouring threads beside each other; strips overlap by what is read beyond them, and so do the runs of rows that
/// a box is cut into. A CPU device's team is one thread, with many cells. Blocks begin with the first boxes, which are
/// the border where neighbours wait for it.
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
  /// 168 registers a thread. Those that ship do so without spilling (ptxas for sm_90, CUDA 13.0). Where the window is
  /// small it holds 16, and where changes are added up, for additions have to wait for each other.
  static constexpr int kBlocksMin = kWindowRegisters > 128 ? 1 : Watched || kWindowRegisters <= 72 ? 4 : 3;

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
      if (task.some) go(group, stencil, places, region, watch, task.place, task.slot);
      if (meets && !finish(group, places, region, number)) return;
    }
  }

 private:
  template <class Group>
  using Window = SweepWindow<Stencil, Steps, (Group::kLanes > 1)>;

  template <class Group>
  HEADRACE_HD static void go(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                             const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                             std::uint32_t slot) {
    if constexpr (Group::kLanes == 1) {
      if (SweepStrip<Stencil, Steps, Watched, true, Group>::is_inner(place, region)) {
        return go_along<true>(group, stencil, places, region, watch, place, slot);
      }
    }
    go_along<false>(group, stencil, places, region, watch, place, slot);
  }

  template <bool Inner, class Group>
  HEADRACE_HD static void go_along(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                                   const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                                   std::uint32_t slot) {
    SweepStrip<Stencil, Steps, Watched, Inner, Group> strip{group, stencil, places, region, place, watch.scale};
    strip.go();
    if constexpr (Watched) strip.add_up(watch.sums, slot);
  }

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

  /// As many tasks of a box as a block has teams are a chunk.
  [[nodiscard]] HEADRACE_HD static std::int64_t chunks_of(const Cut& cut, std::int64_t teams) {
    return (cut.tasks + teams - 1) / teams;
  }

  /// What this team has of a chunk: they are counted through all boxes. False behind the last.
  template <class Group>
  [[nodiscard]] HEADRACE_HD_APART static bool find(const Group& group, const SweepRegion& region, std::uint32_t number,
                                                   SweepTask& to) {
    // Of the first thread: nvcc then knows that all of a team go the same way, and leaves out what others would need.
    const std::uint32_t team = group.team_from(group.team(), 0);
    const std::int64_t teams = group.size() / Group::kTeam;
    std::int64_t chunk = number;
    for (std::int32_t b = 0; b < region.count; ++b) {
      const Cut cut = cut_of<Group>(region, b);
      if (chunk >= chunks_of(cut, teams)) {
        chunk -= chunks_of(cut, teams);
        continue;
      }
      const std::int64_t task = chunk * teams + team;
      const LocalBox& box = region.boxes[b];
      const std::int32_t low = cut.first + static_cast<std::int32_t>(task % cut.strips) * cut.width;
      StripPlace& place = to.place;
      place.low[0] = low < box.low[0] ? box.low[0] : low;
      place.high[0] = smaller(low + cut.width, box.low[0] + box.size[0]);
      place.low[1] = box.low[1] + static_cast<std::int32_t>(task / cut.strips % cut.runs) * cut.rows;
      place.high[1] = smaller(place.low[1] + cut.rows, box.low[1] + box.size[1]);
      place.z = box.low[2] + static_cast<std::int32_t>(task / cut.strips / cut.runs);
      place.first = low - below<Group>();
      place.end = low + cut.width + above<Group>();
      to.slot = static_cast<std::uint32_t>(task) % ChangeSums::kSlots;
      to.some = task < cut.tasks;
      to.is_border = static_cast<std::uint32_t>(b) < region.exchange.boxes;
      return true;
    }
    return false;
  }

  /// After a chunk: pushes what it has stored, where that is border. False where the block must leave.
  template <class Group>
  [[nodiscard]] HEADRACE_HD_APART static bool finish(const Group& group, const SweepPlaces& places,
                                                     const SweepRegion& region, std::uint32_t number) {
    SweepTask task;
    if (!find(group, region, number, task) || !task.is_border || region.exchange.cycle == 0) return true;
    std::int64_t chunks = 0;
    for (std::uint32_t b = 0; b < region.exchange.boxes; ++b) {
      chunks += chunks_of(cut_of<Group>(region, static_cast<std::int32_t>(b)), group.size() / Group::kTeam);
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
