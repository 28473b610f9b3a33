#pragma once

#include <bit>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/sweep.hpp"
#include "headrace/grid/sweep_region.hpp"
#include "headrace/grid/sweep_strip.hpp"
#include "headrace/grid/sweep_window.hpp"

namespace headrace::grid {

/// `Steps` steps of the swept phases over the boxes of a region. A team of threads goes along the rows of a strip,
/// neighbouring threads beside each other; strips overlap by what is read beyond them, and so do the runs of rows that
/// a box is cut into. A CPU device's team is one thread, with many cells.
/// @tparam Watched  with a SweepWatch as well, for stencils that have `static constexpr int kWatched`: a field that
/// each step swaps with another
template <class Stencil, int Steps, bool Watched = false>
struct SweepKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr int kThreadsMax = kSweepThreads;
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;
  /// Of the window on CUDA: 16 bytes of each row of each field that the pass touches.
  static constexpr int kWindowRegisters =
      std::popcount(Plan::loaded().mask | Plan::overwritten().mask) * SweepWindow<Stencil, Steps, false>::kDepth * 4;
  /// Where the rest of a pass fits beside them, a multiprocessor holds 12 warps, though a row is loaded ahead: up to
  /// 168 registers a thread. Those that ship do so without spilling (ptxas for sm_90, CUDA 13.0). Where changes are
  /// added up and 128 registers do, it holds 16, for additions wait for each other.
  static constexpr int kBlocksMin = kWindowRegisters > 128 ? 1 : Watched && kWindowRegisters <= 96 ? 4 : 3;
  /// Whether strips within the domain have code of their own, which asks of no row and no cell whether it is there. Not
  /// where memory alone sets the pace: there it made a pass slower (FDTD in 2D on an H200: 104 instead of 108
  /// Gcells/s).
  static constexpr bool kHasInner = Steps > 1 || Watched;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepWatch& watch = {}) {
    using Window = SweepWindow<Stencil, Steps, (Group::kLanes > 1)>;
    std::uint32_t number = group.item();
    std::uint32_t block = group.block();
    while (block >= region.blocks[number]) block -= region.blocks[number++];
    const LocalBox& box = region.boxes[number];
    const std::int32_t rows = region.rows[number];
    constexpr Layers kHalo = Plan::halo();
    constexpr std::int32_t kLow = round_up(static_cast<std::int32_t>(kHalo.low[0]), Window::kUnit);
    constexpr std::int32_t kHigh = round_up(static_cast<std::int32_t>(kHalo.high[0]), Window::kUnit);
    constexpr auto kSpan = static_cast<std::int32_t>(Group::kTeam) * Window::kCells;
    static_assert(kSpan > kLow + kHigh, "so many steps reach further than a strip is wide");
    // Strips begin at whole units of the part, as its rows do in memory.
    const std::int32_t first = box.low[0] - positive_modulo(box.low[0], Window::kUnit);
    const std::int32_t across = box.low[0] + box.size[0] - first;
    const std::int32_t strips = (across + kSpan - kLow - kHigh - 1) / (kSpan - kLow - kHigh);
    const std::int32_t width = round_up((across + strips - 1) / strips, Window::kUnit);
    const std::int32_t runs = (box.size[1] + rows - 1) / rows;
    const std::int64_t tasks = std::int64_t{strips} * runs * box.size[2];
    // Of the first thread: nvcc then knows that all of a team go the same way, and leaves out what others would need.
    const std::uint32_t team = kHasInner ? group.team_from(group.team(), 0) : group.team();
    const std::int64_t block_teams = group.size() / Group::kTeam;
    for (std::int64_t task = block * block_teams + team; task < tasks; task += group.block_count() * block_teams) {
      const std::int32_t low = first + static_cast<std::int32_t>(task % strips) * width;
      StripPlace place;
      place.low[0] = low < box.low[0] ? box.low[0] : low;
      place.high[0] = smaller(low + width, box.low[0] + box.size[0]);
      place.low[1] = box.low[1] + static_cast<std::int32_t>(task / strips % runs) * rows;
      place.high[1] = smaller(place.low[1] + rows, box.low[1] + box.size[1]);
      place.z = box.low[2] + static_cast<std::int32_t>(task / strips / runs);
      place.first = low - kLow;
      place.end = low + width + kHigh;
      const auto slot = static_cast<std::uint32_t>(task) % ChangeSums::kSlots;
      if constexpr (Group::kLanes == 1 && kHasInner) {
        if (SweepStrip<Stencil, Steps, Watched, true, Group>::is_inner(place, region)) {
          go<true>(group, stencil, places, region, watch, place, slot);
          continue;
        }
      }
      go<false>(group, stencil, places, region, watch, place, slot);
    }
  }

 private:
  template <bool Inner, class Group>
  HEADRACE_HD static void go(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                             const SweepRegion& region, const SweepWatch& watch, const StripPlace& place,
                             std::uint32_t slot) {
    SweepStrip<Stencil, Steps, Watched, Inner, Group> strip{group, stencil, places, region, place, watch.scale};
    strip.go();
    if constexpr (Watched) strip.add_up(watch.sums, slot);
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
