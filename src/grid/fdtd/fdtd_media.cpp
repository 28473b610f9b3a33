#include "grid/fdtd/fdtd_media.hpp"

#include <algorithm>
#include <array>

#include "grid/fdtd/fdtd_cells.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_numbering.hpp"

namespace headrace::grid {

namespace {

/// Uniform runs up to this length between mixed ones count as mixed: switching between rows of constants and rows that
/// look up their coefficients costs more than that many lookups.
constexpr std::size_t kShortMost = 3;

/// Marks the short uniform runs between a row's mixed runs as mixed.
void join_mixed(std::span<std::uint32_t> runs, std::uint32_t mixed) noexcept {
  std::size_t after = runs.size();  // the run after the last mixed one, if there has been one
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] != mixed) continue;
    if (i > after && i - after <= kShortMost) std::ranges::fill(runs.subspan(after, i - after), mixed);
    after = i + 1;
  }
}

}  // namespace

FdtdNumbered<FdtdElectric<double>> electric_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                  double time_step, std::size_t most) {
  const FdtdCells cells(options);
  const bool alike = materials.permittivity.size() == 1 && materials.conductivity.size() == 1 &&
                     !has_edges(materials) && !cells.has_magnetic_walls();
  std::array own{OwnEdges(materials.edges[0]), OwnEdges(materials.edges[1]), OwnEdges(materials.edges[2])};
  const Around around(options.extent, options.averaging, options.periodic);
  const ElectricAxes axes = electric_axes(stencil_of(options));
  return numbered<FdtdElectric<double>, 7>(
      different_cells(options, alike), most,
      [&](const Offsets& cell) {
        const std::int64_t number = (cell[2] * options.extent.ny + cell[1]) * options.extent.nx + cell[0];
        Properties<7> of{};
        for (std::size_t along = axes.first; along < axes.end; ++along) {
          of[along] = around.edge(materials.permittivity, cell, along);
          of[3 + along] = around.edge(materials.conductivity, cell, along);
          own[along].replace(number, of[along], of[3 + along]);
        }
        of[6] = cells.walls_at(cell);
        return of;
      },
      [&](const Properties<7>& of) {
        FdtdElectric<double> made;
        for (std::size_t along = axes.first; along < axes.end; ++along) {
          const FdtdCoefficients its = fdtd_coefficients(of[along], of[3 + along], 1, cells.spacing(along), time_step);
          made.ca[along] = its.ca;
          made.cb[along] = its.cb / FdtdCells::face_share(along, static_cast<unsigned>(of[6]));
        }
        return made;
      });
}

FdtdNumbered<FdtdMagnetic<double>> magnetic_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                  double time_step, std::size_t most) {
  const Around around(options.extent, options.averaging, options.periodic);
  const FdtdCells cells(options);
  return numbered<FdtdMagnetic<double>, 4>(
      different_cells(options, materials.permeability.size() == 1 && !cells.has_magnetic_walls()), most,
      [&](const Offsets& cell) {
        return Properties<4>{around.face(materials.permeability, cell, 0), around.face(materials.permeability, cell, 1),
                             around.face(materials.permeability, cell, 2), static_cast<double>(cells.walls_at(cell))};
      },
      [&](const Properties<4>& of) {
        FdtdMagnetic<double> made;
        for (std::size_t along = 0; along < 3; ++along)
          made.db[along] = fdtd_coefficients(1, 0, of[along], cells.spacing(along), time_step).db *
                           FdtdCells::edge_share(along, static_cast<unsigned>(of[3]));
        return made;
      });
}

std::vector<std::uint32_t> media_runs(std::span<const std::uint32_t> numbers, const Extent& extent) {
  using Media = FdtdMedia<FdtdElectric<double>>;
  const std::int64_t in_row = (extent.nx + Media::kRun - 1) / Media::kRun;
  const std::int64_t rows = extent.ny * extent.nz;
  if (numbers.size() == 1) return {};
  std::vector<std::uint32_t> runs;
  runs.reserve(static_cast<std::size_t>(rows * in_row));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t run = 0; run < in_row; ++run) {
      const std::int64_t cells = std::min<std::int64_t>(Media::kRun, extent.nx - run * Media::kRun);
      const auto its = numbers.subspan(static_cast<std::size_t>(row * extent.nx + run * Media::kRun),
                                       static_cast<std::size_t>(cells));
      const bool alike = std::ranges::all_of(its, [&](std::uint32_t number) { return number == its[0]; });
      runs.push_back(alike ? its[0] : Media::kMixed);
    }
    join_mixed(std::span(runs).last(static_cast<std::size_t>(in_row)), Media::kMixed);
  }
  return runs;
}

}  // namespace headrace::grid
