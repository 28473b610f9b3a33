#pragma once

#include <array>
#include <vector>

#include "headrace/grid/fdtd.hpp"

/// Chooses the media that a domain's absorbing layers are graded for.
namespace headrace::grid {

/// The indices at the two walls of each axis.
using WallIndices = std::array<CpmlIndex, 3>;

/// For each layer, the index of refraction at which a wave is as fast as the root mean square of the speeds in the
/// layer's cells. This mean is close to the fastest medium, since a layer too weak for a medium reflects far more than
/// one too strong (docs/decisions/0047-grade-layers-for-the-medium-at-each-wall.md). Cells that conduct so well that a
/// field vanishes within a step are ignored; a layer of such cells alone is graded for vacuum. The materials must have
/// passed check_materials().
[[nodiscard]] WallIndices wall_indices(const FdtdMaterials& materials, const FdtdOptions& options, double time_step);

/// The layer tables of each axis. Throws as cpml_axis() does.
[[nodiscard]] std::vector<CpmlAxis> layer_axes(const FdtdOptions& options, double time_step,
                                               const WallIndices& indices);

}  // namespace headrace::grid
