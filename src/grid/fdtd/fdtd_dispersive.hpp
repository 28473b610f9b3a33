#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_media.hpp"
#include "headrace/grid/detail/stencils/fdtd_dispersion.hpp"
#include "headrace/grid/fdtd.hpp"

/// Tables for materials with dispersive media: coefficients of E, and poles under the same number.
namespace headrace::grid {

/// The coefficients of E, and the poles of each entry of that table. A component with poles has ca = 1, because the
/// pole phase applies the factor instead.
struct FdtdDispersiveMedia {
  FdtdNumbered<FdtdElectric<double>> electric;
  std::vector<FdtdDispersive<double>> dispersive;  ///< One for each entry of electric.table.
  std::vector<FdtdPoleFactors<double>> poles;
};

/// Returns the smallest permittivity, for which a time step must be stable. Throws UsageError for invalid media and
/// media numbers, as described at Fdtd::set_materials().
double check_media(const FdtdMaterials& materials, const FdtdOptions& options, double time_step);

/// Like electric_media(), with poles: a component has the poles of all media in the cells around it, each weighted by
/// its share. In two dimensions only Ez has entries. The materials must have passed check_materials(). Throws
/// UsageError if a component has more poles than FdtdOptions::pole_values has room for.
[[nodiscard]] FdtdDispersiveMedia dispersive_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                   double time_step);

/// Boxes around the cells that have a component with poles, or one box around all of them if there would be too many.
[[nodiscard]] std::vector<Box> dispersive_boxes(const FdtdDispersiveMedia& media, const Extent& extent);

}  // namespace headrace::grid
