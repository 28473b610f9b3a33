#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "grid/fdtd_tune.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using grid::FdtdOptions;
using Cuts = std::array<std::size_t, 3>;
using Grading = std::array<double, 6>;  // order, sigma, kappa, kappa_order, alpha, alpha_order
using Sides = std::array<std::array<std::int64_t, 2>, 3>;
using Trial = std::tuple<int, std::string_view, std::optional<double>, std::string>;

void make_options(FdtdOptions* self, int dimensions, const grid::Offsets& shape, const std::array<double, 3>& spacing,
                  std::optional<double> time_step, const std::vector<DeviceOrName>& devices,
                  const std::optional<Cuts>& cut, int redundant, const std::string& push, const std::string& mode,
                  const std::string& passes, int pass_steps, double wait_limit, std::int64_t cpml,
                  const std::string& precision, std::shared_ptr<grid::Ranks> ranks, bool averaging,
                  const std::optional<Grading>& grading, bool per_component, const std::optional<Sides>& sides,
                  int pole_values, std::size_t device_memory, int visit_steps, const std::string& polarisation,
                  const std::array<bool, 3>& magnetic_walls, const std::array<bool, 3>& periodic) {
  FdtdOptions options;
  options.extent = {shape[0], shape[1], shape[2]};
  options.dimensions = dimensions;
  options.polarisation = grid::parse_polarisation(polarisation);
  options.spacing = {spacing[0], spacing[1], spacing[2]};
  options.time_step = time_step;
  for (const DeviceOrName& device : devices) options.devices.push_back(to_device(device));
  options.simulation = {.redundant = redundant,
                        .push = grid::parse_push(push),
                        .mode = grid::parse_mode(mode),
                        .passes = grid::parse_passes(passes),
                        .pass_steps = pass_steps,
                        .wait_limit = to_duration("wait_limit", wait_limit),
                        .device_memory_bytes = device_memory,
                        .visit_steps = visit_steps,
                        .ranks = std::move(ranks)};
  options.cpml.cells = cpml;
  if (grading) {
    const auto [order, sigma, kappa, kappa_order, alpha, alpha_order] = *grading;
    options.cpml = {.cells = cpml,
                    .order = order,
                    .conductivity_scale = sigma,
                    .stretch_max = kappa,
                    .stretch_order = kappa_order,
                    .alpha_scale = alpha,
                    .alpha_order = alpha_order};
  }
  options.cpml.sides = sides;
  options.precision = grid::parse_precision(precision);
  options.averaging = averaging;
  options.per_component = per_component;
  options.pole_values = pole_values;
  options.magnetic_walls = magnetic_walls;
  options.periodic = periodic;
  if (cut) options.decomposition = grid::Decomposition::blocks(options.extent, *cut);
  new (self) FdtdOptions(std::move(options));
}

[[nodiscard]] Grading grading_of(const FdtdOptions& self) {
  const grid::CpmlOptions& cpml = self.cpml;
  return {cpml.order,         cpml.conductivity_scale, cpml.stretch_max,
          cpml.stretch_order, cpml.alpha_scale,        cpml.alpha_order};
}

/// Applies the best options, and returns all trials.
[[nodiscard]] std::vector<Trial> tune(FdtdOptions& self, std::optional<int> redundant,
                                      const std::optional<std::string>& push, std::uint64_t steps) {
  const grid::Forced forced{.redundant = redundant,
                            .push = push ? std::optional(grid::parse_push(*push)) : std::nullopt};
  grid::Tuned tuned;
  {
    const GilRelease released;
    tuned = grid::tune(self, forced, steps);
  }
  std::vector<Trial> trials;
  for (const grid::Trial& trial : tuned.trials) {
    const bool ran = trial.why_not.empty();
    trials.emplace_back(trial.options.redundant, grid::to_string(trial.options.push),
                        ran ? std::optional(to_seconds(trial.per_step)) : std::nullopt, trial.why_not);
  }
  self.simulation = tuned.best;
  return trials;
}

void weigh(FdtdOptions& self, const std::vector<double>& speeds) {
  const auto axis = static_cast<std::size_t>(self.dimensions == 2 ? 1 : 2);
  self.decomposition = grid::Decomposition::weighted(self.extent, axis, speeds);
}

}  // namespace

void bind_fdtd_options(nb::module_& module) {
  nb::class_<FdtdOptions>(module, "FdtdOptions", "The settings of an FdtdCore; cells have three indices.")
      .def("__init__", &make_options, "dimensions"_a, "shape"_a, "spacing"_a, "time_step"_a.none(), "devices"_a,
           "cut"_a.none(), "redundant"_a, "push"_a, "mode"_a, "passes"_a, "pass_steps"_a, "wait_limit"_a, "cpml"_a,
           "precision"_a, "ranks"_a.none() = nb::none(), "averaging"_a = true, "grading"_a.none() = nb::none(),
           "per_component"_a = false, "sides"_a.none() = nb::none(), "pole_values"_a = 0, "device_memory"_a = 0,
           "visit_steps"_a = 0, "polarisation"_a = "tm", "magnetic_walls"_a = std::array<bool, 3>{},
           "periodic"_a = std::array<bool, 3>{})
      .def("weigh", &weigh, "speeds"_a,
           "Cuts slabs along the last axis, with thickness in proportion to these numbers, one for each part.")
      .def(
          "measure_speeds", [](const FdtdOptions& self, std::uint64_t steps) { return measure_speeds(self, steps); },
          "steps"_a, nb::call_guard<GilRelease>(), "Cells a second of each device alone, for weigh().")
      .def("tune", &tune, "redundant"_a.none(), "push"_a.none(), "steps"_a,
           "Applies the redundant layers and the push with the shortest step, unless they are given. Returns for each "
           "choice tried: layers, push, seconds a step, and why it is not possible.")
      .def_prop_ro("grading", &grading_of,
                   "The grading of the absorbing layers: order, sigma, kappa, kappa_order, alpha and alpha_order.")
      .def_prop_ro("redundant", [](const FdtdOptions& self) { return self.simulation.redundant; })
      .def_prop_ro("push", [](const FdtdOptions& self) { return grid::to_string(self.simulation.push); });
}

}  // namespace headrace::python
