#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/region.hpp"
#include "headrace/grid/sweep_region.hpp"
#include "headrace/grid/sweep_tasks.hpp"

namespace headrace::grid {

/// A neighbouring part whose passes are chained with those of the part that holds this, as a kernel sees it.
///
/// Each part has a word for every task of each neighbour, in its own memory: the neighbour's kernel stores there the
/// number of the last pass that has done the task, once the cells of it that this part keeps as ghosts lie in this
/// part's memory. So a kernel only ever polls memory of its own device.
struct ChainNeighbour {
  std::int32_t apart[3] = {};           ///< The first cell of this part, in cells of the neighbour.
  LocalBox own = {};                    ///< What the neighbour owns, in its own cells: tasks are cut from there.
  std::int32_t rows = 1;                ///< The rows of its tasks.
  LocalBox ghosts = {};                 ///< What the neighbour keeps of this part as ghosts, in cells of this part.
  const std::uint64_t* done = nullptr;  ///< A word for each task of the neighbour: written by it, polled here.
  std::uint64_t* tell = nullptr;        ///< A word for each task of this part, in the neighbour's memory.
  std::byte* base = nullptr;            ///< Cell (0, 0, 0) of this part in field slot 0 of the neighbour's memory,
  std::int64_t stride_bytes = 0;        ///< the distance from one field slot to the next,
  std::int64_t pitch = 0;               ///< values from a row to the next,
  std::int64_t plane = 0;               ///< and from a plane to the next.

  /// Whether a task that stores `place` reads cells of the neighbour, or the neighbour reads cells of it. `reach`: how
  /// far a pass reads along x and y, the larger of both directions, so that both sides answer alike.
  [[nodiscard]] HEADRACE_HD bool meets(const StripPlace& place, const std::int32_t (&reach)[2]) const noexcept {
    const StripPlace read = seen_from_there(place, reach);
    return read.z >= own.low[2] && read.z < own.low[2] + own.size[2] && overlaps(read, 0) && overlaps(read, 1);
  }

  /// Its tasks that a task which stores `place` must wait for.
  [[nodiscard]] HEADRACE_HD TaskRange tasks_at(const StripPlace& place, const std::int32_t (&reach)[2],
                                               const TeamColumns& team) const noexcept {
    return SweepTasks(own, rows, team).within(seen_from_there(place, reach));
  }

  /// Copies the cells of `place` that the neighbour keeps as ghosts from where a pass has stored them into its memory.
  /// Every thread of the team calls. @param stored  the fields that the pass stores
  template <class Value, class Group>
  HEADRACE_HD void push(const Group& group, const SweepPlaces& places, const SweepRegion& region,
                        const StripPlace& place, FieldSet stored) const noexcept {
    const std::int32_t low[2] = {larger(place.low[0], ghosts.low[0]), larger(place.low[1], ghosts.low[1])};
    const std::int32_t across = smaller(place.high[0], ghosts.low[0] + ghosts.size[0]) - low[0];
    const std::int32_t down = smaller(place.high[1], ghosts.low[1] + ghosts.size[1]) - low[1];
    if (across <= 0 || down <= 0) return;
    const std::int64_t from = low[0] + low[1] * region.pitch + place.z * region.plane;
    const std::int64_t to = low[0] + low[1] * pitch + place.z * plane;
    for (int field = 0; field < kFieldsMax; ++field) {
      if (!stored.contains(field)) continue;
      const Value* own_cells =
          reinterpret_cast<const Value*>(places.from.base + places.to[field] * places.from.stride_bytes) + from;
      Value* its_cells = reinterpret_cast<Value*>(base + places.to[field] * stride_bytes) + to;
      for (auto cell = static_cast<std::int32_t>(group.team_rank()); cell < across * down;
           cell += static_cast<std::int32_t>(Group::kTeam)) {
        const std::int32_t row = cell / across;
        const std::int32_t column = cell % across;
        its_cells[column + row * pitch] = own_cells[column + row * region.pitch];
      }
    }
  }

 private:
  /// A place and what is read about it, in cells of the neighbour.
  [[nodiscard]] HEADRACE_HD StripPlace seen_from_there(const StripPlace& place,
                                                       const std::int32_t (&reach)[2]) const noexcept {
    StripPlace read = place;
    for (int axis = 0; axis < 2; ++axis) {
      read.low[axis] += apart[axis] - reach[axis];
      read.high[axis] += apart[axis] + reach[axis];
    }
    read.z += apart[2];
    return read;
  }
  [[nodiscard]] HEADRACE_HD bool overlaps(const StripPlace& read, int axis) const noexcept {
    return read.low[axis] < own.low[axis] + own.size[axis] && read.high[axis] > own.low[axis];
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t larger(std::int32_t a, std::int32_t b) noexcept {
    return a > b ? a : b;
  }
};

}  // namespace headrace::grid
