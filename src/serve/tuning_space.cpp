#include "serve/tuning_space.hpp"

#include <algorithm>
#include <array>

#include "headrace/device/device.hpp"
#include "serve/kept_shape.hpp"

namespace headrace::serve::detail {

namespace {

constexpr std::array kSchedules{Schedule::blocking,   Schedule::pipelined,  Schedule::async, Schedule::graph,
                                Schedule::persistent, Schedule::dispatched, Schedule::caller};

/// Half of `value`, `value`, and twice `value`, within the bounds.
std::vector<std::uint32_t> around(std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  std::vector<std::uint32_t> values;
  for (const std::uint32_t next : {value / 2, value, value * 2}) {
    if (next >= least && next <= most) values.push_back(next);
  }
  return values;
}

Plan base_of(Schedule schedule, MemoryKind memory) {
  Plan plan;
  plan.name = "tuned";
  plan.schedule = schedule;
  plan.host_memory = memory;
  plan.binding = schedule == Schedule::caller ? Binding::none : Binding::cores;
  return plan;
}

/// The last rung of the ladder with this schedule, which defines its choices.
const Rung& rung_of(Schedule schedule) {
  const auto all = rungs();
  return *std::find_if(all.rbegin(), all.rend(), [&](const Rung& rung) { return rung.plan.schedule == schedule; });
}

Grid grid_of(Schedule schedule, MemoryKind memory, const CandidateLimits& limits, const Held& held) {
  constexpr std::uint32_t kThreadsOfBlockMost = 1024;
  constexpr std::uint32_t kWarp = 32;
  const Axes axes = axes_of(rung_of(schedule), limits);
  Grid grid{base_of(schedule, memory), {{Choice::threads, axes.threads}}};
  if (schedule == Schedule::pipelined || schedule == Schedule::async || schedule == Schedule::graph ||
      schedule == Schedule::persistent) {
    grid.axes.push_back({Choice::streams, axes.streams});
  }
  if (schedule == Schedule::pipelined || schedule == Schedule::async || schedule == Schedule::graph ||
      schedule == Schedule::caller) {
    grid.axes.push_back({Choice::batch, {1, 8, 32, 128}});
  }
  if (schedule != Schedule::persistent && schedule != Schedule::dispatched) return grid;
  grid.axes.push_back({Choice::slots, {256, 1024, 4096}});
  if (!held.groups_matter) return grid;
  grid.axes.push_back({Choice::block_threads, around(held.block_threads, kWarp, kThreadsOfBlockMost)});
  if (held.blocks > 1) grid.axes.push_back({Choice::blocks, around(held.blocks, 1, held.resident_blocks)});
  // The last value, 0, means as many as fit.
  if (schedule == Schedule::dispatched && held.resident_blocks >= 4) {
    grid.axes.push_back({Choice::workers, {held.resident_blocks / 4, held.resident_blocks / 2, 0}});
  }
  return grid;
}

std::uint32_t value_of(const Grid& grid, const Point& point, Choice choice, std::uint32_t otherwise) {
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    if (grid.axes[i].choice == choice) return grid.axes[i].values[point.at[i]];
  }
  return otherwise;
}

/// Whether at most twice as many queries are in flight as the device can hold; for resident kernels, at most as many.
bool useful(const Grid& grid, const Point& point, const CandidateLimits& limits) {
  const std::uint64_t together =
      std::uint64_t{value_of(grid, point, Choice::threads, 1)} * value_of(grid, point, Choice::streams, 1);
  if (is_threadless(grid.base.schedule) || value_of(grid, point, Choice::streams, 1) == 1) return true;
  return together <= (grid.base.schedule == Schedule::persistent ? 1U : 2U) * std::uint64_t{limits.resident};
}

/// Every point whose index on each axis is one of `indices(axis)`.
template <class Indices>
std::vector<Point> points(const std::vector<Grid>& grids, const CandidateLimits& limits, Indices indices) {
  std::vector<Point> found;
  for (std::size_t g = 0; g < grids.size(); ++g) {
    std::vector<Point> partial{{g, {}}};
    for (const Axis& axis : grids[g].axes) {
      std::vector<Point> longer;
      for (const Point& point : partial) {
        for (const std::uint32_t index : indices(axis)) {
          longer.push_back(point);
          longer.back().at.push_back(index);
        }
      }
      partial = std::move(longer);
    }
    std::ranges::copy_if(partial, std::back_inserter(found),
                         [&](const Point& point) { return useful(grids[g], point, limits); });
  }
  return found;
}

}  // namespace

Held held_by(Device device, const Operator& op) {
  return {.blocks = op.shape.blocks,
          .block_threads = op.shape.threads,
          .resident_blocks = device.resident_blocks_max(linked(op, device).kernel, op.shape.threads),
          .groups_matter = !device.properties().host_cores && !keeps_shape(op)};
}

std::vector<Grid> tuning_grids(const std::vector<Schedule>& schedules, const CandidateLimits& limits,
                               const Held& held) {
  std::vector<Grid> grids;
  for (const Schedule schedule : kSchedules) {
    if (!schedules.empty() && std::ranges::find(schedules, schedule) == schedules.end()) continue;
    // Kernels read host memory in place (mapped), or copies transfer it (pinned). Which is faster depends on the sizes.
    const bool both = schedule != Schedule::persistent && schedule != Schedule::dispatched;
    if (schedule != Schedule::dispatched) grids.push_back(grid_of(schedule, MemoryKind::pinned, limits, held));
    if (both || schedule == Schedule::dispatched) {
      grids.push_back(grid_of(schedule, MemoryKind::mapped, limits, held));
    }
  }
  return grids;
}

std::vector<Point> all_points(const std::vector<Grid>& grids, const CandidateLimits& limits) {
  return points(grids, limits, [](const Axis& axis) {
    std::vector<std::uint32_t> indices(axis.values.size());
    for (std::uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
    return indices;
  });
}

std::vector<Point> coarse_points(const std::vector<Grid>& grids, const CandidateLimits& limits) {
  return points(grids, limits, [](const Axis& axis) {
    std::vector<std::uint32_t> indices;
    const auto last = static_cast<std::uint32_t>(axis.values.size() - 1);
    for (std::uint32_t i = 0; i < last; i += 2) indices.push_back(i);
    indices.push_back(last);
    return indices;
  });
}

std::vector<Point> neighbours(const std::vector<Grid>& grids, const Point& point, const CandidateLimits& limits) {
  const Grid& grid = grids[point.grid];
  std::vector<Point> found;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    for (const int step : {-1, 1}) {
      const std::int64_t index = std::int64_t{point.at[i]} + step;
      if (index < 0 || index >= static_cast<std::int64_t>(grid.axes[i].values.size())) continue;
      Point next = point;
      next.at[i] = static_cast<std::uint32_t>(index);
      if (useful(grid, next, limits)) found.push_back(std::move(next));
    }
  }
  return found;
}

Candidate candidate_at(const std::vector<Grid>& grids, const Point& point, const CandidateLimits& limits) {
  const Grid& grid = grids[point.grid];
  Plan plan = grid.base;
  plan.slots = value_of(grid, point, Choice::slots, plan.slots);
  plan.blocks = value_of(grid, point, Choice::blocks, 0);
  plan.block_threads = value_of(grid, point, Choice::block_threads, 0);
  plan.workers = value_of(grid, point, Choice::workers, 0);
  return make_candidate(std::move(plan), value_of(grid, point, Choice::threads, 1),
                        value_of(grid, point, Choice::streams, 1), value_of(grid, point, Choice::batch, 1), limits);
}

}  // namespace headrace::serve::detail
