#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_media.hpp"
#include "headrace/grid/detail/stencils/fdtd_dispersion.hpp"
#include "headrace/grid/fdtd.hpp"

/// Materials with dispersive media as tables: coefficients of E and poles by the same number.
namespace headrace::grid {

/// The coefficients of E, and the poles that belong to each entry of that table. Where a component has poles its ca is
/// 1: the phase of the poles does what it stands for.
struct FdtdDispersiveMedia {
  FdtdNumbered<FdtdElectric<double>> electric;
  std::vector<FdtdDispersive<double>> dispersive;  ///< One for each entry of electric.table.
  std::vector<FdtdPoleFactors<double>> poles;
};

/// Throws UsageError for media and numbers of media that cannot be: as Fdtd::set_materials() says. The least
/// permittivity that a time step has to be stable for.
double check_media(const FdtdMaterials& materials, const FdtdOptions& options, double time_step);

/// As electric_media(): a component has the poles of all media of the cells around it, each with its share. In two
/// dimensions entries are those of Ez alone. The materials must have passed check_materials(). Throws UsageError where
/// components have more poles than FdtdOptions::pole_values has room for.
[[nodiscard]] FdtdDispersiveMedia dispersive_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                   double time_step);

/// The boxes of the cells that have a component with poles; one around all of them where they are many.
[[nodiscard]] std::vector<Box> dispersive_boxes(const FdtdDispersiveMedia& media, const Extent& extent);

}  // namespace headrace::grid
