#pragma once

#include <array>
#include <vector>

#include "headrace/grid/fdtd.hpp"

/// What the absorbing layers of a domain are graded for.
namespace headrace::grid {

/// The indices at the two walls of each axis.
using WallIndices = std::array<CpmlIndex, 3>;

/// For each layer the index of refraction whose wave is as fast as those of the layer's cells are in the root mean
/// square: the mean is near the fastest medium, since a layer too weak for a medium reflects far more than one too
/// strong (docs/decisions/0047-grade-layers-for-the-medium-at-each-wall.md). Cells that conduct so well that a field is
/// gone within a step count for nothing; a layer of nothing else is graded for vacuum. The materials must have passed
/// check_materials().
[[nodiscard]] WallIndices wall_indices(const FdtdMaterials& materials, const FdtdOptions& options, double time_step);

/// The tables of each axis. Throws as cpml_axis() does.
[[nodiscard]] std::vector<CpmlAxis> layer_axes(const FdtdOptions& options, double time_step,
                                               const WallIndices& indices);

}  // namespace headrace::grid
