#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "headrace/grid/detail/stencils/fdtd_media.hpp"
#include "headrace/grid/fdtd.hpp"

/// The materials of a domain of three dimensions as tables of the combinations of coefficients that occur in a cell.
namespace headrace::grid {

/// A table, and the number of each cell's combination in it, x fastest; one number where all cells have the same.
template <class Combination>
struct FdtdNumbered {
  std::vector<Combination> table;
  std::vector<std::uint32_t> numbers;
};

/// The most combinations that numbers tell apart.
inline constexpr std::size_t kCombinationsMost = std::numeric_limits<std::uint32_t>::max();

/// The coefficients of E. With FdtdOptions::averaging a component takes the mean permittivity and conductivity of the
/// four cells around its edge, otherwise the material of its cell. A wall counts as if the cells at it went on beyond.
/// Edges of their own take their values instead.
/// The materials must have passed check_materials(). Throws UsageError for more than `most` combinations.
[[nodiscard]] FdtdNumbered<FdtdElectric<double>> electric_media(const FdtdMaterials& materials,
                                                                const FdtdOptions& options, double time_step,
                                                                std::size_t most = kCombinationsMost);

/// The coefficients of H, as those of E. With averaging a component takes the harmonic mean of the permeabilities of
/// the two cells that share its face: it lies along the normal of that face, so that B is the same on both sides, and H
/// along the way from the middle of one cell to that of the other is B times the mean of 1 / permeability.
[[nodiscard]] FdtdNumbered<FdtdMagnetic<double>> magnetic_media(const FdtdMaterials& materials,
                                                                const FdtdOptions& options, double time_step,
                                                                std::size_t most = kCombinationsMost);

/// FdtdMedia::runs of a domain, where short uniform runs between mixed ones are mixed, too. `numbers` is one a cell, or
/// one for all, which needs none.
[[nodiscard]] std::vector<std::uint32_t> media_runs(std::span<const std::uint32_t> numbers, const Extent& extent);

}  // namespace headrace::grid
