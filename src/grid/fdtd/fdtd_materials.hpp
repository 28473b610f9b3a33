#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// A cell's value, from a list with one value for each cell or one value for all.
[[nodiscard]] inline double value_at(std::span<const double> values, std::size_t cell) noexcept {
  return values.size() == 1 ? values[0] : values[cell];
}

/// Throws as Fdtd::set_materials() does.
void check_materials(const FdtdMaterials& materials, const FdtdOptions& options, double time_step);

/// Whether Hx and Hy of a cell have coefficients of their own, in two dimensions: where they are given per component,
/// differ at magnetic walls, or belong to cells that are no squares.
[[nodiscard]] bool has_db_of_hy(const FdtdOptions& options) noexcept;

/// The coefficients in two dimensions: one value for each cell, or a single value if all are equal.
struct FdtdMaterialFields {
  std::vector<double> ca;
  std::vector<double> cb;
  std::vector<double> db;
  std::vector<double> db_of_hy;  ///< Only with has_db_of_hy().
};

/// The materials must have passed check_materials().
[[nodiscard]] FdtdMaterialFields material_fields(const FdtdMaterials& materials, const FdtdOptions& options,
                                                 double time_step);

/// Throws as Fdtd::set_component_materials() does.
void check_component_materials(const FdtdComponentMaterials& materials, const FdtdOptions& options, double time_step);

/// The coefficients of materials that have passed check_component_materials().
[[nodiscard]] FdtdMaterialFields component_fields(const FdtdComponentMaterials& materials, const FdtdOptions& options,
                                                  double time_step);

/// Throws UsageError, naming the largest stable time step, if `time_step` is not stable.
void check_time_step(double time_step, const FdtdOptions& options, double permittivity_min, double permeability_min);

}  // namespace headrace::grid
