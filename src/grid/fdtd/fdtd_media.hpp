#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "headrace/grid/detail/stencils/fdtd_media.hpp"
#include "headrace/grid/fdtd.hpp"

/// Builds tables of the coefficient combinations that occur in the cells of a three-dimensional domain.
namespace headrace::grid {

/// A table of combinations, and each cell's index into it, x fastest. A single index stands for all cells.
template <class Combination>
struct FdtdNumbered {
  std::vector<Combination> table;
  std::vector<std::uint32_t> numbers;
};

/// The most combinations that an index can distinguish.
inline constexpr std::size_t kCombinationsMost = std::numeric_limits<std::uint32_t>::max();

/// The coefficients of E. With FdtdOptions::averaging a component takes the mean permittivity and conductivity of the
/// four cells around its edge, otherwise the material of its cell. The cells at a wall count as if they continued
/// beyond it. Individual edges take their own values instead. The materials must have passed check_materials(). Throws
/// UsageError for more than `most` combinations.
[[nodiscard]] FdtdNumbered<FdtdElectric<double>> electric_media(const FdtdMaterials& materials,
                                                                const FdtdOptions& options, double time_step,
                                                                std::size_t most = kCombinationsMost);

/// The coefficients of H, built like those of E. With averaging a component takes the harmonic mean of the
/// permeabilities of the two cells that share its face. The component lies along the normal of that face: B is the same
/// on both sides, and H between the centres of the two cells is B times the mean of 1 / permeability.
[[nodiscard]] FdtdNumbered<FdtdMagnetic<double>> magnetic_media(const FdtdMaterials& materials,
                                                                const FdtdOptions& options, double time_step,
                                                                std::size_t most = kCombinationsMost);

/// FdtdMedia::runs of a domain, with short uniform runs between mixed ones counted as mixed. `numbers` has one number
/// for each cell, or one for all cells, which needs no runs.
[[nodiscard]] std::vector<std::uint32_t> media_runs(std::span<const std::uint32_t> numbers, const Extent& extent);

}  // namespace headrace::grid
