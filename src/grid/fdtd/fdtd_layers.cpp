#include "grid/fdtd/fdtd_layers.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "grid/fdtd/fdtd_materials.hpp"

namespace headrace::grid {

namespace {

[[nodiscard]] double index_in(const Box& box, const FdtdMaterials& materials, const FdtdOptions& options,
                              double time_step) {
  double squared_speeds = 0;  // relative to that of light
  std::int64_t cells = 0;
  for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
    for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
      for (std::int64_t x = box.low[0]; x < box.high[0]; ++x) {
        const auto cell = static_cast<std::size_t>((z * options.extent.ny + y) * options.extent.nx + x);
        const double permittivity = value_at(materials.permittivity, cell);
        const double loss =
            value_at(materials.conductivity, cell) * time_step / (2 * permittivity * kVacuumPermittivity);
        if (loss > 1) continue;
        squared_speeds += 1 / (permittivity * value_at(materials.permeability, cell));
        ++cells;
      }
    }
  }
  return cells == 0 ? 1 : std::sqrt(static_cast<double>(cells) / squared_speeds);
}

}  // namespace

WallIndices wall_indices(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  WallIndices indices;
  const bool uniform =
      materials.permittivity.size() == 1 && materials.conductivity.size() == 1 && materials.permeability.size() == 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(options.dimensions); ++axis) {
    Box low = uniform ? Box::cell({0, 0, 0}) : Box::whole(options.extent);
    Box high = low;
    if (!uniform) {
      const auto [cells_low, cells_high] = options.cpml.thickness(axis);
      low.high[axis] = cells_low;
      high.low[axis] = high.high[axis] - cells_high;
    }
    indices[axis] = {.low = index_in(low, materials, options, time_step),
                     .high = index_in(high, materials, options, time_step)};
  }
  return indices;
}

std::vector<CpmlAxis> layer_axes(const FdtdOptions& options, double time_step, const WallIndices& indices) {
  std::vector<CpmlAxis> axes;
  const Offsets along = options.extent.cells_along();
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(options.dimensions); ++axis) {
    axes.push_back(cpml_axis(along[axis], options.spacing.along(axis), time_step, options.cpml, indices[axis], axis));
  }
  return axes;
}

}  // namespace headrace::grid
