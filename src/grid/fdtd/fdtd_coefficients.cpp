#include "headrace/grid/fdtd_coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// How deep in a layer a place is: 0 at its inner border and between the layers, 1 at the wall.
double depth_at(double place, std::int64_t count, std::int64_t cells) {
  const auto thick = static_cast<double>(cells);
  const double low = (thick - place) / thick;
  const double high = (place - static_cast<double>(count - cells)) / thick;
  return std::max({0.0, low, high});
}

void check(std::int64_t count, const CpmlOptions& options) {
  if (options.cells < 0) {
    throw UsageError(fmt::format("an absorbing layer of {} cells: its thickness must be 0 or more", options.cells));
  }
  if (options.cells > 0 && 2 * options.cells >= count) {
    throw UsageError(
        fmt::format("two absorbing layers of {} cells do not fit into an axis of {} cells: take at most {}, or 0 for "
                    "walls that reflect",
                    options.cells, count, (count - 1) / 2));
  }
  const bool good = options.order >= 1 && options.conductivity_scale >= 0 && options.stretch_max >= 1 &&
                    options.alpha_scale >= 0 && std::isfinite(options.order) && std::isfinite(options.alpha_scale) &&
                    std::isfinite(options.conductivity_scale) && std::isfinite(options.stretch_max);
  if (!good) {
    throw UsageError(
        "an absorbing layer needs an order and a stretch of at least 1, and a conductivity and an alpha of at least 0");
  }
}

CpmlTable cpml_table(std::int64_t count, double offset, double spacing, double time_step, const CpmlOptions& options) {
  const auto size = static_cast<std::size_t>(count);
  CpmlTable table{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  if (options.cells == 0) return table;
  const double impedance = kVacuumPermeability * kSpeedOfLight;
  const double best = 0.8 * (options.order + 1) / (impedance * spacing);
  for (std::size_t i = 0; i < size; ++i) {
    const double depth = depth_at(static_cast<double>(i) + offset, count, options.cells);
    if (depth <= 0) continue;
    const double grade = std::pow(depth, options.order);
    const double sigma = options.conductivity_scale * best * grade;
    const double kappa = 1 + (options.stretch_max - 1) * grade;
    const double alpha = options.alpha_scale * best * (1 - depth);
    table.b[i] = std::exp(-(sigma / kappa + alpha) * time_step / kVacuumPermittivity);
    table.c[i] = sigma > 0 ? sigma * (table.b[i] - 1) / (kappa * (sigma + kappa * alpha)) : 0;
    table.k[i] = 1 / kappa - 1;
  }
  return table;
}

}  // namespace

double stable_time_step(int dimensions, double spacing, double permittivity_min, double permeability_min) {
  return spacing * std::sqrt(permittivity_min * permeability_min) / (kSpeedOfLight * std::sqrt(dimensions));
}

FdtdCoefficients fdtd_coefficients(double permittivity, double conductivity, double permeability, double spacing,
                                   double time_step) {
  const double epsilon = permittivity * kVacuumPermittivity;
  // The loss is taken halfway between two steps, which keeps the scheme of second order and stable for any
  // conductivity.
  const double loss = conductivity * time_step / (2 * epsilon);
  return {.ca = (1 - loss) / (1 + loss),
          .cb = time_step / (epsilon * spacing) / (1 + loss),
          .db = time_step / (permeability * kVacuumPermeability * spacing)};
}

CpmlAxis cpml_axis(std::int64_t count, double spacing, double time_step, const CpmlOptions& options) {
  check(count, options);
  return {cpml_table(count, 0, spacing, time_step, options), cpml_table(count, 0.5, spacing, time_step, options)};
}

}  // namespace headrace::grid
