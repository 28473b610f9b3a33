#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/jacobi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

template <class Value>
using Values = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cuts = std::array<std::size_t, 3>;

/// A simulation of jacobi(), and the type of its values.
struct JacobiCore {
  grid::Simulation simulation;
  grid::Precision precision;
};

void make_jacobi(JacobiCore* self, const grid::Offsets& shape, const std::vector<DeviceOrName>& names,
                 const std::optional<Cuts>& cut, int redundant, const std::string& push, const std::string& passes,
                 int pass_steps, const std::string& precision) {
  const grid::Extent extent{shape[0], shape[1], shape[2]};
  std::vector<Device> devices;
  for (const DeviceOrName& name : names) devices.push_back(to_device(name));
  const grid::Precision parsed = grid::parse_precision(precision);
  grid::SimulationOptions options{.redundant = redundant,
                                  .push = grid::parse_push(push),
                                  .passes = grid::parse_passes(passes),
                                  .pass_steps = pass_steps};
  const GilRelease released;
  auto decomposition =
      cut ? grid::Decomposition::blocks(extent, *cut) : grid::Decomposition::best(extent, devices.size());
  if (!cut && devices.size() == 1 && devices.front().properties().host_cores && redundant > 0) {
    grid::CoreShares shares = grid::over_cores(devices.front(), extent, {}, redundant);
    decomposition = std::move(shares.decomposition);
    devices = std::move(shares.devices);
    options.redundant = shares.redundant;
  }
  const int dimensions = extent.dimensions();
  grid::StencilProgram program =
      parsed == grid::Precision::fp32 ? grid::jacobi<float>(dimensions) : grid::jacobi<double>(dimensions);
  new (self) JacobiCore{grid::Simulation(decomposition, std::move(devices), std::move(program), options), parsed};
}

template <class Value>
nb::object copied(JacobiCore& self) {
  const auto cells = static_cast<std::size_t>(self.simulation.decomposition().extent().cells());
  auto values = make_values<Value>(cells);
  {
    const GilRelease released;
    self.simulation.get(grid::kJacobiSolution, std::span<Value>(values.get(), cells));
  }
  return nb::cast(to_numpy<Value>(std::move(values), cells));
}

template <class Value, int Field>
void set_values(JacobiCore& self, const Values<Value>& values) {
  const GilRelease released;
  self.simulation.set(Field, std::span<const Value>(values.data(), values.shape(0)));
}

}  // namespace

void bind_jacobi(nb::module_& module) {
  nb::class_<JacobiCore>(module, "JacobiCore", "The core of headrace.grid.Jacobi: arrays are flat, x fastest.")
      .def("__init__", &make_jacobi, "shape"_a, "devices"_a, "cut"_a.none(), "redundant"_a, "push"_a, "passes"_a,
           "pass_steps"_a, "precision"_a)
      .def(
          "step", [](JacobiCore& self, std::uint64_t count) { self.simulation.step(count); }, "count"_a,
          nb::call_guard<GilRelease>())
      .def(
          "step_with_residuals",
          [](JacobiCore& self, std::uint64_t count) {
            std::vector<std::pair<double, double>> residuals;
            for (const grid::Norms& norms : grid::jacobi_step_with_residuals(self.simulation, count)) {
              residuals.emplace_back(norms.maximum, norms.two);
            }
            return residuals;
          },
          "count"_a, nb::call_guard<GilRelease>(), "For each step, like residual().")
      .def(
          "residual",
          [](JacobiCore& self) {
            const grid::Norms norms = grid::jacobi_residual(self.simulation);
            return std::pair(norms.maximum, norms.two);
          },
          nb::call_guard<GilRelease>(), "The largest absolute value, and the square root of the sum of squares.")
      .def(
          "get_solution",
          [](JacobiCore& self) {
            return self.precision == grid::Precision::fp32 ? copied<float>(self) : copied<double>(self);
          },
          nb::sig("def get_solution(self) -> numpy.typing.NDArray[Any]"))
      .def("set_solution", &set_values<float, grid::kJacobiSolution>, "values"_a)
      .def("set_solution", &set_values<double, grid::kJacobiSolution>, "values"_a)
      .def("set_source", &set_values<float, grid::kJacobiSource>, "values"_a)
      .def("set_source", &set_values<double, grid::kJacobiSource>, "values"_a)
      .def_prop_ro("steps_done", [](const JacobiCore& self) { return self.simulation.steps_done(); })
      .def_prop_ro("push", [](const JacobiCore& self) { return grid::to_string(self.simulation.options().push); })
      .def_prop_ro("passes", [](const JacobiCore& self) { return self.simulation.passes_alone(); })
      .def_prop_ro("moved_bytes", [](const JacobiCore& self) { return self.simulation.moved_bytes(); });
}

}  // namespace headrace::python
