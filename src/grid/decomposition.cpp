#include "headrace/grid/detail/decomposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr std::int64_t kCellsMax = std::numeric_limits<std::int32_t>::max();

void require_cells(const Extent& extent) {
  const Offsets along = extent.cells_along();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (along[axis] < 1 || along[axis] > kCellsMax) {
      throw UsageError(fmt::format("a domain of {} cells is out of range: along {} it must have 1 to {} cells",
                                   to_string(extent), axis_name(axis), kCellsMax));
    }
  }
}

void require_parts(const Extent& extent, std::size_t axis, std::size_t parts) {
  if (axis > 2) throw UsageError(fmt::format("an axis must be 0 (x), 1 (y) or 2 (z), not {}", axis));
  const std::int64_t cells = extent.cells_along()[axis];
  if (parts < 1)
    throw UsageError(fmt::format("a domain must be cut into at least one part along {}, not 0", axis_name(axis)));
  if (std::cmp_greater(parts, cells)) {
    throw UsageError(fmt::format(
        "{} parts along {} are too many: the domain of {} has {} cells there, and each part needs at least one", parts,
        axis_name(axis), to_string(extent), cells));
  }
}

[[nodiscard]] std::vector<std::int64_t> equal_cuts(std::int64_t cells, std::size_t parts) {
  std::vector<std::int64_t> cuts;
  const auto count = static_cast<std::int64_t>(parts);
  // cells * part / count could overflow.
  for (std::int64_t part = 0; part <= count; ++part) {
    cuts.push_back(cells / count * part + std::min(part, cells % count));
  }
  return cuts;
}

/// A row of halo cells is contiguous in memory. Each cell of a halo column occupies its own 64-byte line, which is read
/// and written whole. Two H200 reach 99.6% of twice one with 32000 x 4000 cells cut into halves of 2000 rows, and 94.9%
/// with halves of 16000 columns.
constexpr double kColumnCells = 16;

/// Number of cells on the faces between parts, with cells of columns weighted by their cost.
[[nodiscard]] double faces(const Extent& extent, const std::array<std::size_t, 3>& along) {
  const Offsets cells = extent.cells_along();
  const double all = static_cast<double>(cells[0]) * static_cast<double>(cells[1]) * static_cast<double>(cells[2]);
  double sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double each = axis == 0 ? kColumnCells : 1;
    sum += each * static_cast<double>(along[axis] - 1) * (all / static_cast<double>(cells[axis]));
  }
  return sum;
}

}  // namespace

Decomposition::Decomposition(const Extent& extent, Cuts cuts) : extent_(extent), cuts_(std::move(cuts)) {
  for (std::size_t z = 0; z + 1 < cuts_[2].size(); ++z) {
    for (std::size_t y = 0; y + 1 < cuts_[1].size(); ++y) {
      for (std::size_t x = 0; x + 1 < cuts_[0].size(); ++x) {
        parts_.push_back({.low = {cuts_[0][x], cuts_[1][y], cuts_[2][z]},
                          .high = {cuts_[0][x + 1], cuts_[1][y + 1], cuts_[2][z + 1]}});
      }
    }
  }
}

Decomposition Decomposition::blocks(const Extent& extent, const std::array<std::size_t, 3>& along) {
  require_cells(extent);
  Cuts cuts;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    require_parts(extent, axis, along[axis]);
    cuts[axis] = equal_cuts(extent.cells_along()[axis], along[axis]);
  }
  return {extent, std::move(cuts)};
}

Decomposition Decomposition::slabs(const Extent& extent, std::size_t parts, std::size_t axis) {
  require_cells(extent);
  require_parts(extent, axis, parts);
  std::array<std::size_t, 3> along{1, 1, 1};
  along[axis] = parts;
  return blocks(extent, along);
}

Decomposition Decomposition::best(const Extent& extent, std::size_t parts) {
  require_cells(extent);
  if (parts < 1) throw UsageError("a domain must be cut into at least one part, not 0");
  const Offsets cells = extent.cells_along();
  std::array<std::size_t, 3> found{};
  double fewest = std::numeric_limits<double>::infinity();
  // Starts with the most parts along z, then along y, so that the first of several equal cuts is the preferred one.
  for (std::size_t z = parts; z > 0; --z) {
    if (parts % z != 0 || std::cmp_greater(z, cells[2])) continue;
    for (std::size_t y = parts / z; y > 0; --y) {
      const std::array<std::size_t, 3> along{parts / z / y, y, z};
      if (parts / z % y != 0 || std::cmp_greater(y, cells[1]) || std::cmp_greater(along[0], cells[0])) continue;
      if (faces(extent, along) >= fewest) continue;
      fewest = faces(extent, along);
      found = along;
    }
  }
  if (found[0] == 0) {
    throw UsageError(fmt::format("a domain of {} cannot be cut into {} blocks: no three factors of {} fit its axes",
                                 to_string(extent), parts, parts));
  }
  return blocks(extent, found);
}

Decomposition Decomposition::weighted(const Extent& extent, std::size_t axis, std::span<const double> speeds) {
  require_cells(extent);
  require_parts(extent, axis, speeds.size());
  for (const double speed : speeds) {
    if (!(speed > 0) || !std::isfinite(speed))
      throw UsageError(fmt::format("a speed must be finite and above 0, not {}", speed));
  }
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  Cuts cuts{equal_cuts(extent.nx, 1), equal_cuts(extent.ny, 1), equal_cuts(extent.nz, 1)};
  const std::int64_t cells = extent.cells_along()[axis];
  std::vector<std::int64_t>& along = cuts[axis];
  along.assign(1, 0);
  double before = 0;
  for (std::size_t part = 1; part < speeds.size(); ++part) {
    before += speeds[part - 1] / all;
    const auto left = static_cast<std::int64_t>(speeds.size() - part);  // parts that still need a cell
    const auto ideal = static_cast<std::int64_t>(std::llround(before * static_cast<double>(cells)));
    along.push_back(std::clamp(ideal, along.back() + 1, cells - left));
  }
  along.push_back(cells);
  return {extent, std::move(cuts)};
}

Box Decomposition::with_images() const noexcept {
  Layers images;
  for (std::size_t axis = 0; axis < 3; ++axis)
    images.low[axis] = images.high[axis] = periodic_[axis] ? extent_.cells_along()[axis] : 0;
  return Box::whole(extent_).grow(images);
}

std::vector<Offsets> Decomposition::shifts() const {
  std::vector<Offsets> found{{}};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!periodic_[axis]) continue;
    const std::size_t count = found.size();
    for (const std::int64_t by : {-extent_.cells_along()[axis], extent_.cells_along()[axis]}) {
      for (std::size_t i = 0; i < count; ++i) {
        found.push_back(found[i]);
        found.back()[axis] = by;
      }
    }
  }
  return found;
}

std::array<std::size_t, 3> Decomposition::along() const noexcept {
  return {cuts_[0].size() - 1, cuts_[1].size() - 1, cuts_[2].size() - 1};
}

Layers Decomposition::neighbours(std::size_t part) const noexcept {
  const Offsets cells = extent_.cells_along();
  Layers sides;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    sides.low[axis] = periodic_[axis] || parts_[part].low[axis] > 0 ? 1 : 0;
    sides.high[axis] = periodic_[axis] || parts_[part].high[axis] < cells[axis] ? 1 : 0;
  }
  return sides;
}

void Decomposition::require_room_for(const Layers& ghosts) const {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<std::int64_t>& cuts = cuts_[axis];
    const std::int64_t width = std::max(ghosts.low[axis], ghosts.high[axis]);
    if ((cuts.size() <= 2 && !periodic_[axis]) || width == 0) continue;
    for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
      const std::int64_t cells = cuts[part + 1] - cuts[part];
      if (cells >= width) continue;
      const std::int64_t most = std::max<std::int64_t>(1, cuts.back() / width);
      if (cuts.back() < width) {
        throw UsageError(
            fmt::format("the {} cells along {} are fewer than the {} ghost layers beyond its periodic walls; "
                        "use fewer redundant layers",
                        cuts.back(), axis_name(axis), width));
      }
      throw UsageError(
          fmt::format("a part of {} cells along {} is thinner than the {} ghost layers of its neighbour; use at most "
                      "{} equal part{} along {}, or fewer redundant layers",
                      cells, axis_name(axis), width, most, most == 1 ? "" : "s", axis_name(axis)));
    }
  }
}

std::vector<Exchange> Decomposition::exchanges(const Layers& ghosts) const {
  require_room_for(ghosts);
  std::vector<Exchange> found;
  for (std::size_t to = 0; to < parts_.size(); ++to) {
    for (std::size_t from = 0; from < parts_.size(); ++from) {
      for (const Offsets& shift : shifts()) {
        if (from == to && shift == Offsets{}) continue;
        const Offsets back{-shift[0], -shift[1], -shift[2]};
        const Box box = parts_[from].intersect(moved(parts_[to].grow(ghosts), back));
        if (!box.empty()) found.push_back({from, to, box, shift});
      }
    }
  }
  return found;
}

}  // namespace headrace::grid
