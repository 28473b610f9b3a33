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

/// A domain cut into parts, a box each, by planes across the axes. Parts are numbered as cells are: x first.
class Decomposition {
 public:
  /// `parts` equal slabs (to a cell) along an axis. All of these throw UsageError for a domain without cells, of 2^31
  /// or more along an axis, or with fewer cells than parts along one.
  [[nodiscard]] static Decomposition slabs(const Extent& extent, std::size_t parts, std::size_t axis);
  /// Equal blocks, so many along each axis.
  [[nodiscard]] static Decomposition blocks(const Extent& extent, const std::array<std::size_t, 3>& along);
  /// The blocks whose faces between parts have the fewest cells, where one across x counts as 16, for its ghosts are
  /// columns; of equals, those cut along the slowest axis, whose ghosts are contiguous.
  [[nodiscard]] static Decomposition best(const Extent& extent, std::size_t parts);
  /// Slabs whose thickness goes with the speed of who is to update them, at least one cell each.
  [[nodiscard]] static Decomposition weighted(const Extent& extent, std::size_t axis, std::span<const double> speeds);

  [[nodiscard]] const Extent& extent() const noexcept { return extent_; }
  [[nodiscard]] const std::vector<Box>& parts() const& noexcept { return parts_; }
  [[nodiscard]] std::vector<Box> parts() && noexcept { return std::move(parts_); }
  /// How many parts there are along each axis.
  [[nodiscard]] std::array<std::size_t, 3> along() const noexcept;
  /// The sides of a part where another is, 1 there and 0 at the edge of the domain.
  [[nodiscard]] Layers neighbours(std::size_t part) const noexcept;

  /// For every pair of parts what the first sends to the second, which has `ghosts` about what it owns; corners
  /// included. Throws as require_room_for() does.
  [[nodiscard]] std::vector<Exchange> exchanges(const Layers& ghosts) const;
  /// Throws UsageError when a part is thinner than the ghosts of a neighbour, and says along which axis, and how many
  /// parts would do.
  void require_room_for(const Layers& ghosts) const;

 private:
  using Cuts = std::array<std::vector<std::int64_t>, 3>;
  Decomposition(const Extent& extent, Cuts cuts);

  Extent extent_;
  Cuts cuts_;  ///< Along each axis where parts begin, and where the last ends.
  std::vector<Box> parts_;
};

}  // namespace headrace::grid
