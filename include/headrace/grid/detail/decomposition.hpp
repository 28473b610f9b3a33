#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/grid/detail/box.hpp"

namespace headrace::grid {

/// Cells that one part owns and another has as ghosts.
struct Exchange {
  std::size_t from = 0;
  std::size_t to = 0;
  Box box;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// A domain cut by planes across the axes into parts, each of which is a box. Parts are numbered like cells: x first.
class Decomposition {
 public:
  /// `parts` slabs along an axis, equal to within a cell. Like the functions below, throws UsageError for a domain
  /// without cells, one of 2^31 cells or more along an axis, or fewer cells than parts along an axis.
  [[nodiscard]] static Decomposition slabs(const Extent& extent, std::size_t parts, std::size_t axis);
  /// Equal blocks, with the given number along each axis.
  [[nodiscard]] static Decomposition blocks(const Extent& extent, const std::array<std::size_t, 3>& along);
  /// The blocks with the fewest cells in the faces between parts. A cell of a face across x counts as 16, because its
  /// ghosts are columns. Among equals, prefers cuts along the slowest axis, whose ghosts are contiguous.
  [[nodiscard]] static Decomposition best(const Extent& extent, std::size_t parts);
  /// Slabs with a thickness proportional to the speed of the device that updates them, at least one cell each.
  [[nodiscard]] static Decomposition weighted(const Extent& extent, std::size_t axis, std::span<const double> speeds);

  [[nodiscard]] const Extent& extent() const noexcept { return extent_; }
  [[nodiscard]] const std::vector<Box>& parts() const& noexcept { return parts_; }
  [[nodiscard]] std::vector<Box> parts() && noexcept { return std::move(parts_); }
  /// The number of parts along each axis.
  [[nodiscard]] std::array<std::size_t, 3> along() const noexcept;
  /// 1 on each side of a part that has a neighbour, and 0 at the edge of the domain.
  [[nodiscard]] Layers neighbours(std::size_t part) const noexcept;

  /// For every pair of parts, the cells that the first sends to the second, which has `ghosts` around its own cells,
  /// corners included. Throws as require_room_for() does.
  [[nodiscard]] std::vector<Exchange> exchanges(const Layers& ghosts) const;
  /// Throws UsageError if a part is thinner than a neighbour's ghosts. The message names the axis and the number of
  /// parts that would fit.
  void require_room_for(const Layers& ghosts) const;

 private:
  using Cuts = std::array<std::vector<std::int64_t>, 3>;
  Decomposition(const Extent& extent, Cuts cuts);

  Extent extent_;
  Cuts cuts_;  ///< Along each axis, where parts begin and where the last one ends.
  std::vector<Box> parts_;
};

}  // namespace headrace::grid
