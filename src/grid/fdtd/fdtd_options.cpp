#include "grid/fdtd/fdtd_options.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "grid/fdtd/fdtd_names.hpp"
#include "headrace/base/error.hpp"
#include "headrace/grid/detail/stencils/fdtd_dispersion.hpp"

namespace headrace::grid {

namespace {

void check_periodic(const FdtdOptions& options) {
  if (options.dimensions == 2 && options.periodic[2])
    throw UsageError("there is no wall across z in two dimensions; give periodic walls of x or y");
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!options.periodic[axis]) continue;
    if (options.magnetic_walls[axis]) {
      throw UsageError(
          fmt::format("the walls of {0} are periodic, so the low one cannot be a magnetic conductor; leave "
                      "{0} out of one of them",
                      "xyz"[axis]));
    }
    const auto [low, high] = options.cpml.thickness(axis);
    if (low == 0 && high == 0) continue;
    throw UsageError(
        fmt::format("the walls of {} are periodic, so they have no layers, but {} and {} cells are given; give each "
                    "wall its own thickness",
                    "xyz"[axis], low, high));
  }
}

}  // namespace

FdtdOptions checked(FdtdOptions options) {
  if (options.dimensions != 2 && options.dimensions != 3) {
    throw UsageError(fmt::format("FDTD has 2 or 3 dimensions, not {}", options.dimensions));
  }
  const Extent& extent = options.extent;
  const bool flat = options.dimensions == 2;
  if (extent.nx < 2 || extent.ny < 2 || (flat ? extent.nz != 1 : extent.nz < 2)) {
    throw UsageError(fmt::format("the domain has {} cells: it needs at least 2 along each of {} axes{}",
                                 to_string(extent), options.dimensions, flat ? ", and 1 along z" : ""));
  }
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(options.dimensions); ++axis) {
    const double spacing = options.spacing.along(axis);
    if (!std::isfinite(spacing) || spacing <= 0)
      throw UsageError(fmt::format("the spacing is {} m: it must be finite and above 0", spacing));
  }
  if (options.devices.empty()) throw UsageError("FDTD needs at least one device");
  if (options.polarisation == Polarisation::te && !flat)
    throw UsageError("polarisation te is for two dimensions; in three there are all components");
  if (options.per_component && stencil_of(options) != FdtdStencil::plane_tm)
    throw UsageError("materials per component are available in two dimensions with polarisation tm only");
  if (options.pole_values < 0 || options.pole_values > kPoleValuesMax) {
    throw UsageError(
        fmt::format("pole_values is {}: it must be 0 to {}, with one value for each Debye or Drude pole and two for "
                    "each Lorentz pole",
                    options.pole_values, kPoleValuesMax));
  }
  if (options.per_component && options.pole_values > 0)
    throw UsageError("materials per component cannot be dispersive; set pole_values to 0, or turn per_component off");
  const std::array<bool, 3>& magnetic = options.magnetic_walls;
  if (flat && magnetic[2])
    throw UsageError("there is no wall across z in two dimensions; give magnetic walls of x or y");
  if (stencil_of(options) == FdtdStencil::plane_tm && options.pole_values > 0 && (magnetic[0] || magnetic[1])) {
    throw UsageError(
        "dispersive media cannot be combined with magnetic walls in two dimensions with polarisation tm; compute the "
        "whole scene, or use three dimensions");
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!magnetic[axis] || options.cpml.thickness(axis)[0] == 0) continue;
    throw UsageError(
        fmt::format("the low wall of {} is a magnetic conductor, so it has no layer, but {} cells are given; "
                    "give each wall its own thickness",
                    "xyz"[axis], options.cpml.thickness(axis)[0]));
  }
  check_periodic(options);
  return options;
}

FdtdOptions with_all_cores(FdtdOptions options) {
  const SimulationOptions& its = options.simulation;
  if (options.devices.size() != 1 || options.decomposition || its.ranks) return options;
  if (its.mode != Mode::streams || its.passes == Passes::always || its.redundant < 1) return options;
  const Device device = options.devices.front();
  if (!device.properties().host_cores || its.device_memory_bytes > 0) return options;
  // A domain that does not fit, with ghosts of an eighth, is visited slab by slab, which takes one part.
  const std::size_t value_bytes = options.precision == Precision::fp32 ? sizeof(float) : sizeof(double);
  const std::size_t fields = fdtd_names(options).size() + pole_names(options).size() + 1;
  const std::size_t free = device.memory().free_bytes;
  if (static_cast<std::size_t>(options.extent.cells()) * fields * value_bytes > free - free / 8) return options;
  CoreShares shares = over_cores(device, options.extent, options.periodic, its.redundant);
  options.devices = std::move(shares.devices);
  options.decomposition = std::move(shares.decomposition);
  options.simulation.redundant = shares.redundant;
  return options;
}

}  // namespace headrace::grid
