#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// How the stencils compute in cells with unequal edges. Their curls are plain differences of neighbours, so their
/// fields are integrals over edges: a field holds its component times the length of the edge that the component lies
/// along, in units of the shortest edge. Coefficients are those of cubes with a spacing for each direction of a
/// component: the product of the other two edges over the one along it. In cubes all factors are exactly 1, and all
/// spacings that of the cubes. In two dimensions, cells are as long across the plane as their shortest edge.
///
/// At a magnetic wall H is 0 outside, so that only the part of an edge or face of the dual grid that lies inside
/// counts: integrals of H over halved edges are fields of half the value, and E around halved faces changes twice as
/// fast.
class FdtdCells {
 public:
  explicit FdtdCells(const FdtdOptions& options) noexcept;

  /// The length of cells along an axis, in metres.
  [[nodiscard]] double edge(std::size_t axis) const noexcept { return edges_[axis]; }
  /// What a component along an axis is multiplied by to become the value of its field.
  [[nodiscard]] double factor(std::size_t axis) const noexcept { return factors_[axis]; }
  /// The spacing in the coefficients of a component along an axis.
  [[nodiscard]] double spacing(std::size_t axis) const noexcept { return spacings_[axis]; }
  /// Whether any low wall is a magnetic conductor.
  [[nodiscard]] bool has_magnetic_walls() const noexcept { return magnetic_[0] || magnetic_[1] || magnetic_[2]; }
  /// The magnetic walls that a cell lies at: bit n for axis n. Components in the plane of such a wall have half a cell
  /// of the dual grid around them.
  [[nodiscard]] unsigned walls_at(const Offsets& cell) const noexcept;
  /// The share of the dual face around a component of E that lies inside of the domain.
  [[nodiscard]] static double face_share(std::size_t along, unsigned walls) noexcept;
  /// The share of the dual edge along a component of H that lies inside of the domain.
  [[nodiscard]] static double edge_share(std::size_t along, unsigned walls) noexcept {
    return (walls >> along & 1U) != 0 ? 0.5 : 1;
  }
  /// The coefficients of hy over those of hx in the same medium, for two dimensions.
  [[nodiscard]] double hy_share() const noexcept { return spacings_[0] / spacings_[1]; }
  /// The largest stable time step in vacuum, or in a medium of smaller permittivity and permeability (relative).
  [[nodiscard]] double stable_time_step(double permittivity_min = 1, double permeability_min = 1) const noexcept;
  /// As in messages: "0.001 m", or "0.002 x 0.001 m" for unequal edges.
  [[nodiscard]] std::string text() const;

 private:
  int dimensions_;
  std::array<double, 3> edges_{};
  std::array<double, 3> factors_{};
  std::array<double, 3> spacings_{};
  std::array<bool, 3> magnetic_{};
};

}  // namespace headrace::grid
