#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

namespace {

/// A smaller part takes less time than an exchange with its neighbours.
constexpr std::int64_t kCellsMin = 1 << 14;
/// Rows of a part for each step between exchanges. Neighbours compute one row twice for each of those steps.
constexpr std::int64_t kRowsPerStep = 16;
/// More steps at a time gain nothing, because the rows of all of them must fit into a core's cache. A plane of a space
/// is as large as many rows of a plane.
constexpr int kStepsOfPlanes = 16;
constexpr int kStepsOfSpaces = 2;

[[nodiscard]] std::int64_t cores_of(Device device) {
  const auto cores = std::max(device.properties().multiprocessor_count, 1);
  const auto allowed = static_cast<int>(std::thread::hardware_concurrency());  // 0 if it is not known
  return allowed > 0 ? std::min(cores, allowed) : cores;
}

/// The fewest cells of a part along an axis with neighbours; the most there can be without any.
[[nodiscard]] std::int64_t thinnest(const Decomposition& decomposition) {
  std::int64_t least = INT32_MAX;
  for (std::size_t part = 0; part < decomposition.parts().size(); ++part) {
    const Layers neighbours = decomposition.neighbours(part);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (neighbours.low[axis] + neighbours.high[axis] == 0) continue;
      least = std::min(least, decomposition.parts()[part].size(axis));
    }
  }
  return least;
}

}  // namespace

CoreShares over_cores(Device device, const Extent& extent, const std::array<bool, 3>& periodic, int redundant) {
  std::int64_t parts = std::clamp<std::int64_t>(extent.cells() / kCellsMin, 1, cores_of(device));
  Decomposition cut = Decomposition::best(extent, static_cast<std::size_t>(parts));
  cut.set_periodic(periodic);
  for (; parts > 1 && thinnest(cut) < 2 * std::int64_t{redundant}; --parts) {
    cut = Decomposition::best(extent, static_cast<std::size_t>(parts - 1));
    cut.set_periodic(periodic);
  }
  const bool cached = extent.cells() < 2 * kCellsMin;  // several steps at a time would save nothing
  const int most = cached ? 1 : extent.dimensions() > 2 ? kStepsOfSpaces : kStepsOfPlanes;
  const auto chosen = static_cast<int>(std::clamp<std::int64_t>(thinnest(cut) / kRowsPerStep, 1, most));
  return {.decomposition = std::move(cut),
          .devices = std::vector<Device>(static_cast<std::size_t>(parts), device),
          .redundant = redundant > 1 ? redundant : chosen};
}

}  // namespace headrace::grid
