#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/sweep.hpp"
#include "headrace/grid/detail/sweep_region.hpp"
#include "headrace/grid/detail/sweep_tasks.hpp"
#include "headrace/grid/detail/sweep_window.hpp"

namespace headrace::grid {

/// The bounds checks of a team in a strip: none, if everything is within the domain; whether rows are held, if the
/// cells of a thread are either all held or all not; or a check for each cell.
enum class SweepAsks { nothing, rows, cells };

/// The geometry of a team's strip.
template <class Stencil, int Steps, bool Watched, class Group>
struct SweepTeam {
  using Plan = Sweep<Stencil, Steps>;
  using Window = SweepWindow<Stencil, Steps, (Group::kLanes > 1)>;
  static constexpr std::int32_t kCells = Window::kCells;  ///< The cells of a thread.
  static constexpr std::int32_t kColumns = static_cast<std::int32_t>(Group::kTeam) * kCells;

  [[nodiscard]] HEADRACE_HD static constexpr TeamColumns columns() noexcept {
    constexpr Layers kHalo = Plan::halo();
    constexpr auto kTeam = TeamColumns::reaching(kColumns, Window::kUnit, kHalo.low[0], kHalo.high[0]);
    static_assert(kColumns > kTeam.low + kTeam.high, "a pass of this many steps reaches further than a strip is wide");
    return kTeam;
  }

  [[nodiscard]] HEADRACE_HD static SweepAsks asks_for(const StripPlace& place, const SweepRegion& region) noexcept {
    const std::int32_t low = region.held.low[0];
    const std::int32_t high = low + region.held.size[0];
    const std::int32_t past = place.first + kColumns;
    const auto is_between = [&](std::int32_t cell) {
      return (cell - place.first) % kCells == 0;
    };  // between two threads
    const bool holds_whole = (low <= place.first || is_between(low)) && (high >= past || is_between(high));
    const bool stores_whole = is_between(place.low[0]) && is_between(place.high[0]);
    const bool owns = place.low[0] >= 0 && place.high[0] <= region.own_size[0] && place.low[1] >= 0 &&
                      place.high[1] <= region.own_size[1] && place.z >= 0 && place.z < region.own_size[2];
    if (!holds_whole || !stores_whole || (Watched && !owns)) return SweepAsks::cells;
    const std::int32_t first_row = place.low[1] - static_cast<std::int32_t>(Plan::halo().low[1]);
    const std::int32_t past_row = place.high[1] + Plan::lag() + Window::kAhead;
    const bool holds_all = low <= place.first && high >= past && first_row >= region.held.low[1] &&
                           past_row <= region.held.low[1] + region.held.size[1];
    return holds_all ? SweepAsks::nothing : SweepAsks::rows;
  }
};

}  // namespace headrace::grid
