#include "grid/fdtd/fdtd_materials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

std::string cell_text(const Extent& extent, std::int64_t number, int dimensions) {
  const std::int64_t x = number % extent.nx;
  const std::int64_t y = number / extent.nx % extent.ny;
  if (dimensions == 2) return fmt::format("({}, {})", x, y);
  return fmt::format("({}, {}, {})", x, y, number / extent.nx / extent.ny);
}

/// Values of a material by cell, whether they were given one by one or as one for all.
class PerCell {
 public:
  PerCell(std::span<const double> values, const char* name, bool zero_allowed, const FdtdOptions& options)
      : values_(values) {
    const std::int64_t cells = options.extent.cells();
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(cells)) {
      throw UsageError(
          fmt::format("{} has {} values: it needs one, or one for each of {} cells", name, values.size(), cells));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) continue;
      const std::string where =
          values.size() == 1
              ? std::string()
              : " in cell " + cell_text(options.extent, static_cast<std::int64_t>(i), options.dimensions);
      throw UsageError(fmt::format("{} is {}{}: it must be finite and {}", name, value, where,
                                   zero_allowed ? "at least 0" : "above 0"));
    }
  }

  [[nodiscard]] double operator[](std::size_t cell) const noexcept {
    return values_.size() == 1 ? values_[0] : values_[cell];
  }
  [[nodiscard]] double least() const { return *std::min_element(values_.begin(), values_.end()); }

 private:
  std::span<const double> values_;
};

}  // namespace

void check_time_step(double time_step, const FdtdOptions& options, double permittivity_min, double permeability_min) {
  const double largest = stable_time_step(options.dimensions, options.spacing, permittivity_min, permeability_min);
  if (time_step > 0 && time_step <= largest) return;
  throw UsageError(fmt::format(
      "a time step of {} s is not stable: it must be above 0 and at most {} s for a spacing of {} m in {} "
      "dimensions{}",
      time_step, largest, options.spacing, options.dimensions,
      permittivity_min * permeability_min < 1
          ? fmt::format(" with permittivities from {} and permeabilities from {}", permittivity_min, permeability_min)
          : std::string()));
}

FdtdMaterialFields material_fields(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  const PerCell permittivity(materials.permittivity, "permittivity", false, options);
  const PerCell conductivity(materials.conductivity, "conductivity", true, options);
  const PerCell permeability(materials.permeability, "permeability", false, options);
  check_time_step(time_step, options, permittivity.least(), permeability.least());
  const auto cells =
      std::max({materials.permittivity.size(), materials.conductivity.size(), materials.permeability.size()});
  FdtdMaterialFields made{std::vector<double>(cells), std::vector<double>(cells), std::vector<double>(cells)};
  for (std::size_t i = 0; i < cells; ++i) {
    const FdtdCoefficients of =
        fdtd_coefficients(permittivity[i], conductivity[i], permeability[i], options.spacing, time_step);
    made.ca[i] = of.ca;
    made.cb[i] = of.cb;
    made.db[i] = of.db;
  }
  return made;
}

}  // namespace headrace::grid
