#include "grid/fdtd/fdtd_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace headrace::grid {

FdtdCells::FdtdCells(const FdtdOptions& options) noexcept
    : dimensions_(options.dimensions), magnetic_(options.magnetic_walls) {
  const FdtdSpacing& given = options.spacing;
  const double shortest = dimensions_ == 2 ? std::min(given.x, given.y) : std::min({given.x, given.y, given.z});
  edges_ = {given.x, given.y, dimensions_ == 2 ? shortest : given.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // Ordered, so that results do not depend on the order of the axes; divided first, so that cubes stay exact.
    const auto [shorter, longer] = std::minmax(edges_[(axis + 1) % 3], edges_[(axis + 2) % 3]);
    spacings_[axis] = shorter * (longer / edges_[axis]);
    factors_[axis] = edges_[axis] / shortest;
  }
}

unsigned FdtdCells::walls_at(const Offsets& cell) const noexcept {
  unsigned walls = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) walls |= magnetic_[axis] && cell[axis] == 0 ? 1U << axis : 0U;
  return walls;
}

double FdtdCells::face_share(std::size_t along, unsigned walls) noexcept {
  return edge_share((along + 1) % 3, walls) * edge_share((along + 2) % 3, walls);
}

double FdtdCells::stable_time_step(double permittivity_min, double permeability_min) const noexcept {
  const FdtdSpacing edges =
      dimensions_ == 2 ? FdtdSpacing(edges_[0], edges_[1]) : FdtdSpacing(edges_[0], edges_[1], edges_[2]);
  return grid::stable_time_step(dimensions_, edges, permittivity_min, permeability_min);
}

std::string FdtdCells::text() const {
  const std::span edges(edges_.data(), static_cast<std::size_t>(dimensions_));
  if (std::ranges::all_of(edges, [&](double edge) { return edge == edges[0]; })) return fmt::format("{} m", edges[0]);
  return fmt::format("{} m", fmt::join(edges, " x "));
}

}  // namespace headrace::grid
