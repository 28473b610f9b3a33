#pragma once

#include <cstdint>
#include <vector>

#include "serve/candidates.hpp"

/// The plans from which the tuner chooses.
namespace headrace::serve::detail {

enum class Choice : std::uint8_t { threads, streams, batch, slots, blocks, block_threads, workers };

/// Values of one choice, ascending.
struct Axis {
  Choice choice;
  std::vector<std::uint32_t> values;
};

/// A grid of plans that differ from `base` in the choices of `axes`.
struct Grid {
  Plan base;
  std::vector<Axis> axes;
};

/// One plan of a grid: an index into the values of each axis.
struct Point {
  std::size_t grid = 0;
  std::vector<std::uint32_t> at;
  friend auto operator<=>(const Point&, const Point&) = default;
};

/// What the device can hold of an operator, as input of the grids.
struct Held {
  std::uint32_t blocks = 1;  ///< Blocks per query; the next member has the threads of each.
  std::uint32_t block_threads = 1;
  std::uint32_t resident_blocks = 1;
  bool groups_matter = false;  ///< Whether blocks and threads have an effect; false on a CPU device.
};

/// The grids of those schedules (empty: all but Schedule::none).
[[nodiscard]] std::vector<Grid> tuning_grids(const std::vector<Schedule>& schedules, const CandidateLimits& limits,
                                             const Held& held);
[[nodiscard]] Held held_by(Device device, const Operator& op);

/// Every point of the grids whose parallelism the device can use.
[[nodiscard]] std::vector<Point> all_points(const std::vector<Grid>& grids, const CandidateLimits& limits);
/// The points at every other value of each axis, including the first and the last.
[[nodiscard]] std::vector<Point> coarse_points(const std::vector<Grid>& grids, const CandidateLimits& limits);
/// The points that are one step from `point` on one axis.
[[nodiscard]] std::vector<Point> neighbours(const std::vector<Grid>& grids, const Point& point,
                                            const CandidateLimits& limits);
[[nodiscard]] Candidate candidate_at(const std::vector<Grid>& grids, const Point& point, const CandidateLimits& limits);

}  // namespace headrace::serve::detail
