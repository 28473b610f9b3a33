#include "grid/fdtd/fdtd_materials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "grid/fdtd/fdtd_cells.hpp"
#include "grid/fdtd/fdtd_dispersive.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

std::string cell_text(const Extent& extent, std::int64_t number, int dimensions) {
  const std::int64_t x = number % extent.nx;
  const std::int64_t y = number / extent.nx % extent.ny;
  if (dimensions == 2) return fmt::format("({}, {})", x, y);
  return fmt::format("({}, {}, {})", x, y, number / extent.nx / extent.ny);
}

/// Returns the smallest value. Throws UsageError if a material has an invalid one.
double check_values(std::span<const double> values, const char* name, bool zero_allowed, const FdtdOptions& options) {
  const std::int64_t cells = options.extent.cells();
  if (values.size() != 1 && values.size() != static_cast<std::size_t>(cells)) {
    throw UsageError(
        fmt::format("{} has {} values: it needs one, or one for each of {} cells", name, values.size(), cells));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) continue;
    const std::string where =
        values.size() == 1 ? std::string()
                           : " in cell " + cell_text(options.extent, static_cast<std::int64_t>(i), options.dimensions);
    throw UsageError(fmt::format("{} is {}{}: it must be finite and {}", name, value, where,
                                 zero_allowed ? "at least 0" : "above 0"));
  }
  return *std::ranges::min_element(values);
}

/// Returns the smallest permittivity of the edges, or 1 without edges. Throws UsageError for invalid edges.
double check_edges(const FdtdEdges& edges, const FdtdOptions& options) {
  if (edges.permittivity.size() != edges.cells.size() || edges.conductivity.size() != edges.cells.size()) {
    throw UsageError(fmt::format("{} edges have {} permittivities and {} conductivities; give each edge one of each",
                                 edges.cells.size(), edges.permittivity.size(), edges.conductivity.size()));
  }
  double least = 1;
  std::int64_t before = -1;
  for (std::size_t i = 0; i < edges.cells.size(); ++i) {
    const std::int64_t cell = edges.cells[i];
    if (cell <= before || cell >= options.extent.cells()) {
      throw UsageError(
          fmt::format("edge {} belongs to cell {}, but cell numbers must be 0 to {} and strictly ascending", i, cell,
                      options.extent.cells() - 1));
    }
    before = cell;
    const double permittivity = edges.permittivity[i];
    const double conductivity = edges.conductivity[i];
    if (!std::isfinite(permittivity) || permittivity <= 0 || !std::isfinite(conductivity) || conductivity < 0) {
      throw UsageError(
          fmt::format("an edge with permittivity {} and conductivity {} in cell {} is invalid: both must be finite, "
                      "the permittivity above 0 and the conductivity at least 0",
                      permittivity, conductivity, cell_text(options.extent, cell, options.dimensions)));
    }
    least = std::min(least, permittivity);
  }
  return least;
}

[[nodiscard]] double db_of(double permeability, double spacing, double time_step) noexcept {
  return fdtd_coefficients(1, 0, permeability, spacing, time_step).db;
}

/// Applies individual edges to the coefficients of Ez in two dimensions, where each cell has one such edge.
void set_edges(const FdtdEdges& edges, double spacing, double time_step, FdtdMaterialFields& made) {
  for (std::size_t i = 0; i < edges.cells.size(); ++i) {
    const FdtdCoefficients of = fdtd_coefficients(edges.permittivity[i], edges.conductivity[i], 1, spacing, time_step);
    const auto cell = static_cast<std::size_t>(edges.cells[i]);
    made.ca[cell] = of.ca;
    made.cb[cell] = of.cb;
  }
}

/// Applies the shares of FdtdCells to the components of cells at magnetic walls.
void halve_at_walls(const FdtdCells& cells, const Extent& extent, FdtdMaterialFields& made) {
  if (!cells.has_magnetic_walls()) return;
  std::size_t number = 0;
  for (std::int64_t y = 0; y < extent.ny; ++y) {
    for (std::int64_t x = 0; x < extent.nx; ++x, ++number) {
      const unsigned walls = cells.walls_at({x, y, 0});
      made.cb[number] /= FdtdCells::face_share(2, walls);
      made.db[number] *= FdtdCells::edge_share(0, walls);
      made.db_of_hy[number] *= FdtdCells::edge_share(1, walls);
    }
  }
}

[[nodiscard]] std::size_t number_of(const Extent& extent, std::int64_t x, std::int64_t y, std::int64_t z) noexcept {
  return static_cast<std::size_t>((z * extent.ny + y) * extent.nx + x);
}

/// The mean of the four cells of a plane around a cell's low corner, where Ez lies. At a wall that is not periodic,
/// only the cells inside count.
[[nodiscard]] double mean_around(std::span<const double> values, const FdtdOptions& options, std::int64_t x,
                                 std::int64_t y) noexcept {
  const Extent& extent = options.extent;
  const std::int64_t left = index_before(x, extent.nx, options.periodic[0]);
  const std::int64_t below = index_before(y, extent.ny, options.periodic[1]);
  const auto at = [&](std::int64_t i, std::int64_t j) { return value_at(values, number_of(extent, i, j, 0)) / 4; };
  // Adding in pairs keeps equal values to the last bit, and mirror images equal. Quarters keep the sum from
  // overflowing.
  return (at(left, below) + at(x, below)) + (at(left, y) + at(x, y));
}

}  // namespace

bool has_db_of_hy(const FdtdOptions& options) noexcept {
  if (stencil_of(options) != FdtdStencil::plane_tm || options.pole_values > 0) return false;
  const FdtdCells cells(options);
  return options.per_component || cells.has_magnetic_walls() || cells.hy_share() != 1;
}

void check_time_step(double time_step, const FdtdOptions& options, double permittivity_min, double permeability_min) {
  const FdtdCells cells(options);
  const double largest = cells.stable_time_step(permittivity_min, permeability_min);
  if (time_step > 0 && time_step <= largest) return;
  throw UsageError(
      fmt::format("a time step of {} s is not stable: it must be above 0 and at most {} s for a spacing of {} in {} "
                  "dimensions{}",
                  time_step, largest, cells.text(), options.dimensions,
                  permittivity_min * permeability_min < 1
                      ? fmt::format(" with permittivities of at least {} and permeabilities of at least {}",
                                    permittivity_min, permeability_min)
                      : std::string()));
}

void check_materials(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  double permittivity_min = check_values(materials.permittivity, "permittivity", false, options);
  check_values(materials.conductivity, "conductivity", true, options);
  const double permeability_min = check_values(materials.permeability, "permeability", false, options);
  const auto [first, end] = electric_axes(stencil_of(options));
  for (std::size_t along = 0; along < materials.edges.size(); ++along) {
    const FdtdEdges& edges = materials.edges[along];
    if ((along < first || along >= end) && !edges.cells.empty()) {
      throw UsageError(
          fmt::format("edges of e{} are not possible in two dimensions with polarisation {}, where {}", "xyz"[along],
                      to_string(options.polarisation),
                      first == 2 ? "ez is the only electric component" : "ex and ey are the electric components"));
    }
    permittivity_min = std::min(permittivity_min, check_edges(edges, options));
  }
  permittivity_min = std::min(permittivity_min, check_media(materials, options, time_step));
  check_time_step(time_step, options, permittivity_min, permeability_min);
}

void check_component_materials(const FdtdComponentMaterials& materials, const FdtdOptions& options, double time_step) {
  if (!options.per_component)
    throw UsageError("materials per component need a run that was set up for them; set per_component");
  check_values(materials.permittivity, "permittivity of ez", false, options);
  check_values(materials.conductivity, "conductivity of ez", true, options);
  check_values(materials.permeability_hx, "permeability of hx", false, options);
  check_values(materials.permeability_hy, "permeability of hy", false, options);
  const Extent& extent = options.extent;
  const double reached_x = kSpeedOfLight * time_step / options.spacing.x;
  const double reached_y = kSpeedOfLight * time_step / options.spacing.y;
  // Tolerance for sums of rounded numbers, which may be off by their last bits.
  constexpr double kRounded = 1 + 1e-9;
  // Ez at index 0 lies on a wall and stays 0, unless the wall is periodic or a magnetic conductor: there H continues as
  // in a mirror.
  const std::array<bool, 3> open = open_walls(options);
  for (std::int64_t y = open[1] ? 0 : 1; y < extent.ny; ++y) {
    for (std::int64_t x = open[0] ? 0 : 1; x < extent.nx; ++x) {
      const auto inverse = [&](std::span<const double> values, std::int64_t i, std::int64_t j) {
        return 1 / value_at(values, number_of(extent, i, j, 0));
      };
      const double along_y = inverse(materials.permeability_hx, x, y) +
                             inverse(materials.permeability_hx, x, index_before(y, extent.ny, options.periodic[1]));
      const double along_x = inverse(materials.permeability_hy, x, y) +
                             inverse(materials.permeability_hy, index_before(x, extent.nx, options.periodic[0]), y);
      const double least = reached_x * reached_x / 2 * along_x + reached_y * reached_y / 2 * along_y;
      const double permittivity = value_at(materials.permittivity, number_of(extent, x, y, 0));
      if (least <= permittivity * kRounded) continue;
      throw UsageError(
          fmt::format("a time step of {} s is not stable: with the permeabilities around cell ({}, {}), ez needs a "
                      "permittivity of at least {} there, not {}",
                      time_step, x, y, least, permittivity));
    }
  }
}

FdtdMaterialFields component_fields(const FdtdComponentMaterials& materials, const FdtdOptions& options,
                                    double time_step) {
  const FdtdCells cells(options);
  std::size_t most = std::max({materials.permittivity.size(), materials.conductivity.size(),
                               materials.permeability_hx.size(), materials.permeability_hy.size()});
  if (cells.has_magnetic_walls()) most = static_cast<std::size_t>(options.extent.cells());
  FdtdMaterialFields made;
  for (std::vector<double>* field : {&made.ca, &made.cb, &made.db, &made.db_of_hy}) field->reserve(most);
  for (std::size_t cell = 0; cell < most; ++cell) {
    const FdtdCoefficients of = fdtd_coefficients(
        value_at(materials.permittivity, cell), value_at(materials.conductivity, cell), 1, cells.spacing(2), time_step);
    made.ca.push_back(of.ca);
    made.cb.push_back(of.cb);
    made.db.push_back(db_of(value_at(materials.permeability_hx, cell), cells.spacing(0), time_step));
    made.db_of_hy.push_back(db_of(value_at(materials.permeability_hy, cell), cells.spacing(1), time_step));
  }
  halve_at_walls(cells, options.extent, made);
  return made;
}

FdtdMaterialFields material_fields(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  const FdtdCells cells(options);
  const auto coefficients = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const std::size_t cell = number_of(options.extent, x, y, z);
    const auto at_edge = [&](std::span<const double> values) {
      return options.averaging ? mean_around(values, options, x, y) : value_at(values, cell);
    };
    FdtdCoefficients of = fdtd_coefficients(at_edge(materials.permittivity), at_edge(materials.conductivity), 1,
                                            cells.spacing(2), time_step);
    of.db = db_of(value_at(materials.permeability, cell), cells.spacing(0), time_step);
    return of;
  };
  const auto most =
      std::max({materials.permittivity.size(), materials.conductivity.size(), materials.permeability.size()});
  const FdtdEdges& edges = materials.edges[2];
  const bool alike = most == 1 && edges.cells.empty() && !cells.has_magnetic_walls();
  const Extent extent = alike ? Extent{1, 1, 1} : options.extent;
  FdtdMaterialFields made;
  for (std::vector<double>* field : {&made.ca, &made.cb, &made.db})
    field->reserve(static_cast<std::size_t>(extent.cells()));
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx; ++x) {
        const FdtdCoefficients of = coefficients(x, y, z);
        made.ca.push_back(of.ca);
        made.cb.push_back(of.cb);
        made.db.push_back(of.db);
      }
    }
  }
  set_edges(edges, cells.spacing(2), time_step, made);
  if (has_db_of_hy(options)) {
    for (const double db : made.db) made.db_of_hy.push_back(db * cells.hy_share());
  }
  halve_at_walls(cells, options.extent, made);
  return made;
}

}  // namespace headrace::grid
