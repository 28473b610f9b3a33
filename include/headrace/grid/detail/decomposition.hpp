#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/grid/detail/box.hpp"

namespace headrace::grid {

/// Cells that one part owns and another, or the part itself, has as ghosts.
struct Exchange {
  std::size_t from = 0;
  std::size_t to = 0;
  Box box;          ///< Where the cells lie in the part that owns them.
  Offsets shift{};  ///< From there to the ghosts: not 0 if they lie beyond a periodic wall.
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// A box at a distance of `by`.
[[nodiscard]] constexpr Box moved(const Box& box, const Offsets& by) noexcept {
  return {{box.low[0] + by[0], box.low[1] + by[1], box.low[2] + by[2]},
          {box.high[0] + by[0], box.high[1] + by[1], box.high[2] + by[2]}};
}

/// A domain cut by planes across the axes into parts, each of which is a box. Parts are numbered like cells: x first.
/// Along a periodic axis of n cells the domain continues beyond its walls: cell i + n is cell i again, and the parts at
/// the two walls are neighbours. A single part there is its own neighbour.
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

  /// Says which axes are periodic; without this call none is. In ghosts beyond a periodic wall, which parts compute
  /// with redundant layers or several phases, the number of a cell is below 0 or beyond the last one.
  void set_periodic(const std::array<bool, 3>& axes) noexcept { periodic_ = axes; }
  [[nodiscard]] const std::array<bool, 3>& periodic() const noexcept { return periodic_; }
  [[nodiscard]] bool is_periodic() const noexcept { return periodic_[0] || periodic_[1] || periodic_[2]; }
  /// The domain and, along periodic axes, its nearest images.
  [[nodiscard]] Box with_images() const noexcept;
  /// The distances from the domain to itself and its nearest images.
  [[nodiscard]] std::vector<Offsets> shifts() const;

  [[nodiscard]] const Extent& extent() const noexcept { return extent_; }
  [[nodiscard]] const std::vector<Box>& parts() const& noexcept { return parts_; }
  [[nodiscard]] std::vector<Box> parts() && noexcept { return std::move(parts_); }
  /// The number of parts along each axis.
  [[nodiscard]] std::array<std::size_t, 3> along() const noexcept;
  /// 1 on each side of a part that has a neighbour, and 0 at a wall of the domain that is not periodic.
  [[nodiscard]] Layers neighbours(std::size_t part) const noexcept;

  /// For every pair of parts, the cells that the first sends to the second, which has `ghosts` around its own cells,
  /// corners included. Pairs of parts that meet at periodic walls too have an exchange for each shift, one after the
  /// other. Throws as require_room_for() does.
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
  std::array<bool, 3> periodic_{};
};

}  // namespace headrace::grid
