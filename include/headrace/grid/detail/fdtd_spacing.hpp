#pragma once

#include <cstddef>

namespace headrace::grid {

/// The lengths of a cell's edges, in metres: one for all axes, or one for each. Two dimensions have no z.
struct FdtdSpacing {
  double x = 0;  ///< Along x.
  double y = 0;  ///< Along y.
  double z = 0;  ///< Along z.

  constexpr FdtdSpacing() = default;
  /// Cubes, or squares.
  constexpr FdtdSpacing(double all) noexcept : x(all), y(all), z(all) {}  // NOLINT(*-explicit-*): a spacing is a number
  /// Boxes, or rectangles.
  constexpr FdtdSpacing(double along_x, double along_y, double along_z = 0) noexcept
      : x(along_x), y(along_y), z(along_z) {}

  /// The length along axis 0, 1 or 2.
  [[nodiscard]] constexpr double along(std::size_t axis) const noexcept { return axis == 0 ? x : axis == 1 ? y : z; }
};

}  // namespace headrace::grid
