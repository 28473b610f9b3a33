#pragma once

#include <vector>

#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// Fields of coefficients: one value a cell, or one for all where all are equal.
struct FdtdMaterialFields {
  std::vector<double> ca;
  std::vector<double> cb;
  std::vector<double> db;
};

/// Throws as Fdtd::set_materials() does.
[[nodiscard]] FdtdMaterialFields material_fields(const FdtdMaterials& materials, const FdtdOptions& options,
                                                 double time_step);

/// Throws UsageError that names the largest stable time step where `time_step` is none.
void check_time_step(double time_step, const FdtdOptions& options, double permittivity_min, double permeability_min);

}  // namespace headrace::grid
