#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/region.hpp"
#include "headrace/grid/sweep_region.hpp"

namespace headrace::grid {

/// The columns of a team: whole units of so many cells, as those of a part are in memory.
struct TeamColumns {
  std::int32_t all = 0;
  std::int32_t low = 0;  ///< The first so many of them, and the last, are not stored.
  std::int32_t high = 0;
  std::int32_t unit = 1;

  /// Of `cells`, where a pass reaches `low` and `high` cells beyond what is stored.
  [[nodiscard]] HEADRACE_HD static constexpr TeamColumns reaching(std::int32_t cells, std::int32_t unit,
                                                                  std::int64_t low, std::int64_t high) noexcept {
    return {cells, static_cast<std::int32_t>((low + unit - 1) / unit) * unit,
            static_cast<std::int32_t>((high + unit - 1) / unit) * unit, unit};
  }
};

/// The tasks that a box is cut into: strips of columns, each in runs of rows, a plane after the other. Those at the
/// edge of a plane come first: at the domain's they take longest, and teams with others shall still be busy then.
class SweepTasks {
 public:
  HEADRACE_HD SweepTasks(const LocalBox& box, std::int32_t rows, const TeamColumns& team) noexcept
      : box_(box), team_(team), rows_(rows) {
    const std::int32_t stored = team.all - team.low - team.high;
    first_ = box.low[0] - (box.low[0] % team.unit + team.unit) % team.unit;
    const std::int32_t across = box.low[0] + box.size[0] - first_;
    strips_ = over(across, stored);
    width_ = over(over(across, strips_), team.unit) * team.unit;
    runs_ = over(box.size[1], rows);
  }

  [[nodiscard]] HEADRACE_HD std::int64_t count() const noexcept { return std::int64_t{strips_} * runs_ * box_.size[2]; }

  /// @param task  0 to count() - 1
  [[nodiscard]] HEADRACE_HD StripPlace place(std::int64_t task) const noexcept {
    const std::int64_t plane = std::int64_t{strips_} * runs_;
    StripPlace at = in_plane(static_cast<std::int32_t>(task % plane));
    at.z = box_.low[2] + static_cast<std::int32_t>(task / plane);
    return at;
  }

 private:
  [[nodiscard]] HEADRACE_HD StripPlace in_plane(std::int32_t task) const noexcept {
    // The first and the last run, the first and the last strip of the others, and the rest.
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
