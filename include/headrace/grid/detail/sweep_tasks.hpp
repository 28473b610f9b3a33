#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/region.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

namespace headrace::grid {

/// The columns of a team, in whole units of cells that are aligned like those of the part in memory.
struct TeamColumns {
  std::int32_t all = 0;
  std::int32_t low = 0;  ///< Columns at the start, and at the end, that are not stored.
  std::int32_t high = 0;
  std::int32_t unit = 1;

  /// The columns of `cells` for a pass that reaches `low` and `high` cells beyond what it stores.
  [[nodiscard]] HEADRACE_HD static constexpr TeamColumns reaching(std::int32_t cells, std::int32_t unit,
                                                                  std::int64_t low, std::int64_t high) noexcept {
    return {cells, static_cast<std::int32_t>((low + unit - 1) / unit) * unit,
            static_cast<std::int32_t>((high + unit - 1) / unit) * unit, unit};
  }
};

/// The tasks of a box: strips of columns, each split into runs of rows, plane after plane.
class SweepTasks {
 public:
  static constexpr std::uint32_t kBeside = 9;

  HEADRACE_HD SweepTasks(const LocalBox& box, std::int32_t rows, const TeamColumns& team) noexcept
      : box_(box), team_(team), rows_(rows) {
    const std::int32_t stored = team.all - team.low - team.high;
    first_ = box.low[0] - (box.low[0] % team.unit + team.unit) % team.unit;
    const std::int32_t across = box.low[0] + box.size[0] - first_;
    strips_ = over(across, stored);
    width_ = over(over(across, strips_), team.unit) * team.unit;
    runs_ = over(box.size[1], rows);
  }

  [[nodiscard]] HEADRACE_HD std::int64_t count() const noexcept { return in_a_plane() * box_.size[2]; }

  /// Numbers the tasks at the edge of a plane first: those at the edge of the domain take longest, and other teams
  /// should still have work when they finish.
  /// @param task  0 to count() - 1
  [[nodiscard]] HEADRACE_HD StripPlace edge_first(std::int64_t task) const noexcept {
    StripPlace at = in_plane(static_cast<std::int32_t>(task % in_a_plane()));
    at.z = plane_of(task);
    return at;
  }

  /// Numbers tasks so that neighbouring tasks come shortly before and after each other.
  [[nodiscard]] HEADRACE_HD StripPlace row_by_row(std::int64_t task) const noexcept {
    const auto number = static_cast<std::int32_t>(task % in_a_plane());
    StripPlace at = strip_of(number % strips_, number / strips_);
    at.z = plane_of(task);
    return at;
  }

  /// In the numbering of row_by_row(), a task and the tasks that share a side or a corner with it: kBeside of them, or
  /// -1 beyond the box. A pass that reads no further than a task's own width and rows reads from no other tasks.
  [[nodiscard]] HEADRACE_HD std::int64_t beside(std::int64_t task, std::uint32_t number) const noexcept {
    const auto here = static_cast<std::int32_t>(task % in_a_plane());
    const std::int32_t strip = here % strips_ + static_cast<std::int32_t>(number % 3) - 1;
    const std::int32_t run = here / strips_ + static_cast<std::int32_t>(number / 3) - 1;
    if (strip < 0 || strip >= strips_ || run < 0 || run >= runs_) return -1;
    return task - here + std::int64_t{run} * strips_ + strip;
  }

 private:
  [[nodiscard]] HEADRACE_HD std::int64_t in_a_plane() const noexcept { return std::int64_t{strips_} * runs_; }
  [[nodiscard]] HEADRACE_HD std::int32_t plane_of(std::int64_t task) const noexcept {
    return box_.low[2] + static_cast<std::int32_t>(task / in_a_plane());
  }

  [[nodiscard]] HEADRACE_HD StripPlace in_plane(std::int32_t task) const noexcept {
    // The first and the last run, then the first and the last strip of the other runs, then the rest.
    const std::int32_t ends = smaller(runs_, 2);
    if (task < ends * strips_) return strip_of(task % strips_, task / strips_ * (runs_ - 1));
    task -= ends * strips_;
    const std::int32_t sides = smaller(strips_, 2);
    if (task < sides * (runs_ - ends)) return strip_of(task % sides * (strips_ - 1), 1 + task / sides);
    task -= sides * (runs_ - ends);
    const std::int32_t others = strips_ > 2 ? strips_ - 2 : 1;
    return strip_of(1 + task % others, 1 + task / others);
  }

  [[nodiscard]] HEADRACE_HD StripPlace strip_of(std::int32_t strip, std::int32_t run) const noexcept {
    const std::int32_t low = first_ + strip * width_;
    StripPlace at;
    at.low[0] = low < box_.low[0] ? box_.low[0] : low;
    at.high[0] = smaller(low + width_, box_.low[0] + box_.size[0]);
    at.low[1] = box_.low[1] + run * rows_;
    at.high[1] = smaller(at.low[1] + rows_, box_.low[1] + box_.size[1]);
    at.first = low - team_.low;
    at.end = low + width_ + team_.high;
    return at;
  }

  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t over(std::int32_t value, std::int32_t unit) noexcept {
    return (value + unit - 1) / unit;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }

  LocalBox box_;
  TeamColumns team_;
  std::int32_t rows_;
  std::int32_t first_ = 0;
  std::int32_t strips_ = 0;
  std::int32_t width_ = 0;
  std::int32_t runs_ = 0;
};

}  // namespace headrace::grid
