#include "headrace/grid/detail/fdtd_coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

using Thickness = std::array<std::int64_t, 2>;  // cells of the layers at the low and at the high wall

/// Above this decay of psi within a step, differences count as constant in the step: 1 / b would lose digits.
constexpr double kDecayMost = 3;

/// A position in a layer: its depth, 0 at the inner border and 1 at the wall, and the index that the layer is graded
/// for.
struct Place {
  double depth;
  double index;
};

/// The depth of a position `within` cells behind the inner border of a layer. It is 0 at a wall without a layer.
double depth_of(double within, std::int64_t cells) { return cells == 0 ? 0 : within / static_cast<double>(cells); }

/// The depth is 0 between the layers.
Place place_at(double place, std::int64_t count, const Thickness& cells, const CpmlIndex& index) {
  const double low = depth_of(static_cast<double>(cells[0]) - place, cells[0]);
  const double high = depth_of(place - static_cast<double>(count - cells[1]), cells[1]);
  return low > high ? Place{.depth = low, .index = index.low}
                    : Place{.depth = std::max(high, 0.0), .index = index.high};
}

/// Throws UsageError, naming the number, unless it is finite and at least `least`, or greater than `least` with
/// `above`.
void check_number(const char* name, double value, double least, bool above) {
  if (std::isfinite(value) && (above ? value > least : value >= least)) return;
  throw UsageError(fmt::format("{} of an absorbing layer is {}: it must be finite and {} {}", name, value,
                               above ? "above" : "at least", least));
}

void check_thickness(std::int64_t count, const CpmlOptions& options, const Thickness& cells) {
  const std::int64_t thinnest = std::min({options.cells, cells[0], cells[1]});
  if (thinnest < 0) {
    throw UsageError(fmt::format("an absorbing layer cannot have {} cells: its thickness must be 0 or more", thinnest));
  }
  if (std::max(cells[0], cells[1]) > options.cells) {
    throw UsageError(
        fmt::format("absorbing layers of {} and {} cells are thicker than the {} cells given for the thickest",
                    cells[0], cells[1], options.cells));
  }
  if (cells[0] + cells[1] == 0 || cells[0] + cells[1] < count) return;
  if (options.sides) {
    throw UsageError(
        fmt::format("absorbing layers of {} and {} cells leave no cell between them on an axis of {} cells", cells[0],
                    cells[1], count));
  }
  throw UsageError(
      fmt::format("two absorbing layers of {} cells do not fit on an axis of {} cells; use at most {} cells, or 0 for "
                  "walls that reflect",
                  options.cells, count, (count - 1) / 2));
}

void check_numbers(const CpmlOptions& options, const CpmlIndex& index) {
  check_number("the order", options.order, 1, false);
  check_number("the conductivity (sigma)", options.conductivity_scale, 0, false);
  check_number("the stretch (kappa)", options.stretch_max, 1, false);
  check_number("the order of the stretch (kappa_order)", options.stretch_order, 0, true);
  check_number("alpha", options.alpha_scale, 0, false);
  check_number("the order of alpha (alpha_order)", options.alpha_order, 0, true);
  check_number("the index at the low wall", index.low, 0, true);
  check_number("the index at the high wall", index.high, 0, true);
}

struct CpmlMemory {
  double b = 0;
  double c = 0;
  double k = 0;
};

/// 1 / stretch is 1 / kappa less a memory that decays exponentially. Differences count as linear in time within a step
/// (Kelley and Luebbers, IEEE Transactions on Antennas and Propagation 44, 1996), which uses the differences of this
/// step and the previous one; b, c and k express the same with this step's difference alone. If differences counted as
/// constant within a step, the scheme would be of first order: layers would act as if their memory were half a step
/// shorter, and absorb differently at every ratio of time step and spacing.
CpmlMemory memory_of(double sigma, double kappa, double alpha, double time_step) {
  const double decay = (sigma / kappa + alpha) * time_step / kVacuumPermittivity;
  CpmlMemory memory{.b = std::exp(-decay), .c = 0, .k = 1 / kappa - 1};
  if (sigma <= 0 || decay <= 0) return memory;
  const double weight = sigma / (kappa * (sigma + kappa * alpha));
  const double lost = -std::expm1(-decay);
  if (decay > kDecayMost) {
    memory.c = -weight * lost;
    return memory;
  }
  const double mean = lost / decay;
  memory.c = -weight * lost * mean / memory.b;
  memory.k += weight * (mean / memory.b - 1);
  return memory;
}

CpmlTable cpml_table(std::int64_t count, double offset, double spacing, double time_step, const CpmlOptions& options,
                     const CpmlIndex& index, const Thickness& cells) {
  const auto size = static_cast<std::size_t>(count);
  CpmlTable table{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  if (options.cells == 0) return table;
  const double impedance = kVacuumPermeability * kSpeedOfLight;
  for (std::size_t i = 0; i < size; ++i) {
    const Place place = place_at(static_cast<double>(i) + offset, count, cells, index);
    if (place.depth <= 0) continue;
    const double best = 0.8 * (options.order + 1) / (impedance * spacing * place.index);
    const double sigma = options.conductivity_scale * best * std::pow(place.depth, options.order);
    const double kappa = 1 + (options.stretch_max - 1) * std::pow(place.depth, options.stretch_order);
    const double alpha = options.alpha_scale * best * std::pow(1 - place.depth, options.alpha_order);
    const CpmlMemory memory = memory_of(sigma, kappa, alpha, time_step);
    table.b[i] = memory.b;
    table.c[i] = memory.c;
    table.k[i] = memory.k;
    if (!std::isfinite(table.b[i]) || !std::isfinite(table.c[i]) || !std::isfinite(table.k[i])) {
      throw UsageError(
          fmt::format("an absorbing layer with conductivity {}, stretch {} and alpha {} at a spacing of {} m gives "
                      "coefficients out of range; use smaller values",
                      options.conductivity_scale, options.stretch_max, options.alpha_scale, spacing));
    }
  }
  return table;
}

}  // namespace

double stable_time_step(int dimensions, const FdtdSpacing& spacing, double permittivity_min, double permeability_min) {
  double shortest = spacing.x;
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(dimensions); ++axis)
    shortest = std::min(shortest, spacing.along(axis));
  double shares = 0;  // in cubes, exactly the number of dimensions
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimensions); ++axis) {
    const double share = shortest / spacing.along(axis);
    shares += share * share;
  }
  return shortest * std::sqrt(permittivity_min * permeability_min) / (kSpeedOfLight * std::sqrt(shares));
}

FdtdCoefficients fdtd_coefficients(double permittivity, double conductivity, double permeability, double spacing,
                                   double time_step) {
  const double epsilon = permittivity * kVacuumPermittivity;
  // The loss is evaluated halfway between two steps. The scheme stays of second order, and stable for any conductivity.
  const double loss = conductivity * time_step / (2 * epsilon);
  return {.ca = (1 - loss) / (1 + loss),
          .cb = time_step / (epsilon * spacing) / (1 + loss),
          .db = time_step / (permeability * kVacuumPermeability * spacing)};
}

CpmlAxis cpml_axis(std::int64_t count, double spacing, double time_step, const CpmlOptions& options,
                   const CpmlIndex& index, std::size_t axis) {
  const Thickness cells = options.thickness(axis);
  check_thickness(count, options, cells);
  check_numbers(options, index);
  return {cpml_table(count, 0, spacing, time_step, options, index, cells),
          cpml_table(count, 0.5, spacing, time_step, options, index, cells)};
}

}  // namespace headrace::grid
