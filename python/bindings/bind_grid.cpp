#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/grid/fdtd.hpp"
#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using grid::Fdtd;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Value>
using Values = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Edges of one component: cell numbers, permittivities, conductivities and dispersive media.
using Edges = std::tuple<Values<std::int64_t>, Numbers, Numbers, Values<std::uint16_t>>;

[[nodiscard]] std::span<const double> span_of(const Numbers& numbers) noexcept {
  return {numbers.data(), numbers.shape(0)};
}

[[nodiscard]] grid::FdtdEdges edges_of(const Edges& edges) noexcept {
  const auto& [cells, permittivity, conductivity, medium] = edges;
  return {
      {cells.data(), cells.shape(0)}, span_of(permittivity), span_of(conductivity), {medium.data(), medium.shape(0)}};
}

void make_fdtd(Fdtd* self, const grid::FdtdOptions& options) {
  const GilRelease released;
  new (self) Fdtd(options);
}

/// The fewest steps that a call should do: those between exchanges, or two visits of slabs, whose copies in and out
/// overlap.
[[nodiscard]] std::uint64_t steps_at_once(const Fdtd& fdtd) {
  if (const auto slabs = fdtd.simulation().slabs()) return 2 * slabs->steps;
  return static_cast<std::uint64_t>(std::max(fdtd.options().simulation.redundant, 1));
}

/// A domain in slabs: the rows of a slab, the number of slabs, the steps of a visit, the bytes that a visit copies in
/// and out, and the bytes on the device and on the host.
using Slabs =
    std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::size_t, std::size_t>;

[[nodiscard]] std::optional<Slabs> slabs_of(const Fdtd& fdtd) {
  const auto slabs = fdtd.simulation().slabs();
  if (!slabs) return std::nullopt;
  return Slabs(slabs->rows, slabs->count, slabs->steps, slabs->bytes_in, slabs->bytes_out, slabs->device_bytes,
               slabs->host_bytes);
}

/// Steps between checks for Ctrl-C: few enough to respond soon, in whole cycles between exchanges.
[[nodiscard]] std::uint64_t chunk_of(const Fdtd& fdtd) {
  // About a tenth of a second.
  const bool on_cpu = fdtd.options().devices.front().properties().host_cores;
  const std::int64_t updates = std::int64_t{1} << (on_cpu ? 27 : 33);
  const std::int64_t steps = std::clamp<std::int64_t>(updates / fdtd.options().extent.cells(), 1, 1024);
  const std::uint64_t whole = steps_at_once(fdtd);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(steps) / whole, 1) * whole;
}

void step_fdtd(Fdtd& self, std::uint64_t count, std::uint64_t check_every) {
  Interruptible interruptible;
  const bool finished = interruptible.run([&, token = interruptible.token()] {
    const std::uint64_t chunk = chunk_of(self);
    std::uint64_t until_check = check_every;
    while (count > 0 && !token.stop_requested()) {
      std::uint64_t some = std::min(count, chunk);
      if (check_every > 0) some = std::min(some, until_check);
      self.step(some);
      count -= some;
      if (check_every == 0) continue;
      until_check -= some;
      if (until_check > 0) continue;
      self.check_finite();
      until_check = check_every;
    }
    return count == 0;
  });
  if (finished) return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

template <class Value>
nb::object copied(Fdtd& self, const std::string& field, bool as_stored) {
  const auto cells = static_cast<std::size_t>(self.options().extent.cells());
  auto values = make_values<Value>(cells);
  {
    const GilRelease released;
    // Only rank 0 gets the cells of other parts.
    if (self.options().simulation.ranks) std::fill_n(values.get(), cells, Value{0});
    if (as_stored) {
      self.get_state_bytes(field, TypeKey::of<Value>(), values.get(), cells);
    } else {
      self.get(field, std::span<Value>(values.get(), cells));
    }
  }
  return nb::cast(to_numpy<Value>(std::move(values), cells));
}

nb::object get_field(Fdtd& self, const std::string& field, bool as_stored) {
  return self.options().precision == grid::Precision::fp32 ? copied<float>(self, field, as_stored)
                                                           : copied<double>(self, field, as_stored);
}

template <class Value>
void set_field(Fdtd& self, const std::string& field, const Values<Value>& values, bool as_stored) {
  const GilRelease released;
  if (as_stored) {
    self.set_state_bytes(field, TypeKey::of<Value>(), values.data(), values.shape(0));
  } else {
    self.set(field, std::span<const Value>(values.data(), values.shape(0)));
  }
}

nb::object trace(const Fdtd& self, std::size_t receiver) {
  const std::span<const double> recorded = self.trace(receiver);
  auto values = make_values<double>(recorded.size());
  std::copy(recorded.begin(), recorded.end(), values.get());
  return nb::cast(to_numpy<double>(std::move(values), recorded.size()));
}

void resume(Fdtd& self, std::uint64_t steps, const std::vector<Numbers>& traces) {
  std::vector<std::vector<double>> given;
  for (const Numbers& one : traces) given.emplace_back(one.data(), one.data() + one.shape(0));
  self.resume(steps, given);
}

[[nodiscard]] std::vector<std::pair<std::string, std::string>> parts(const Fdtd& self) {
  std::vector<std::pair<std::string, std::string>> made;
  const auto& boxes = self.simulation().decomposition().parts();
  const std::vector<Device>& devices = self.options().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    made.emplace_back(devices[i].name(), grid::to_string(boxes[self.simulation().first_part() + i]));
  }
  return made;
}

using Cells = nb::ndarray<const std::int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

void add_sources(Fdtd& self, const std::string& field, const Cells& cells, const Numbers& samples) {
  std::vector<grid::Offsets> all;
  for (std::size_t i = 0; i < cells.shape(0); ++i) all.push_back({cells(i, 0), cells(i, 1), cells(i, 2)});
  self.add_sources(field, all, span_of(samples));
}

using StepSpan = std::tuple<std::size_t, std::size_t, std::string_view, double, double>;

[[nodiscard]] std::vector<StepSpan> timeline(const Fdtd& self) {
  std::vector<StepSpan> made;
  for (const grid::WorkSpan& span : self.simulation().timeline()) {
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    made.emplace_back(span.part, span.cycle, grid::to_string(span.work), seconds(span.begin), seconds(span.end));
  }
  return made;
}

void bind_points(nb::class_<Fdtd>& fdtd) {
  fdtd.def(
          "set_materials",
          [](Fdtd& self, const Numbers& permittivity, const Numbers& conductivity, const Numbers& permeability,
             const std::array<Edges, 3>& edges, const std::vector<grid::FdtdMedium>& media,
             const Values<std::uint16_t>& medium) {
            const GilRelease released;
            self.set_materials({span_of(permittivity),
                                span_of(conductivity),
                                span_of(permeability),
                                {edges_of(edges[0]), edges_of(edges[1]), edges_of(edges[2])},
                                media,
                                {medium.data(), medium.shape(0)}});
          },
          "permittivity"_a, "conductivity"_a, "permeability"_a, "edges"_a, "media"_a, "medium"_a,
          "One value, or one for each cell, x fastest; edges along each axis: cells, permittivity, conductivity, "
          "medium; dispersive media, and the number of each cell's medium, 0 for none.")
      .def(
          "set_component_materials",
          [](Fdtd& self, const Numbers& permittivity, const Numbers& conductivity, const Numbers& permeability_hx,
             const Numbers& permeability_hy) {
            const GilRelease released;
            self.set_component_materials(
                {span_of(permittivity), span_of(conductivity), span_of(permeability_hx), span_of(permeability_hy)});
          },
          "permittivity"_a, "conductivity"_a, "permeability_hx"_a, "permeability_hy"_a,
          "One value, or one for each cell, x fastest.")
      .def(
          "add_source",
          [](Fdtd& self, const std::string& field, const grid::Offsets& cell, const Numbers& samples) {
            self.add_source(field, cell, span_of(samples));
          },
          "field"_a, "cell"_a, "samples"_a)
      .def("add_sources", &add_sources, "field"_a, "cells"_a, "samples"_a, "The same samples in each of these cells.")
      .def(
          "add_receiver",
          [](Fdtd& self, const std::string& field, const grid::Offsets& cell) {
            return self.add_receiver(field, cell);
          },
          "field"_a, "cell"_a)
      .def("trace", &trace, "receiver"_a, nb::sig("def trace(self, receiver: int) -> numpy.typing.NDArray[Any]"))
      .def_prop_ro("receiver_count", &Fdtd::receiver_count);
}

/// Edges of one component: cell numbers and dispersive media.
using MediumEdges = std::tuple<Values<std::int64_t>, Values<std::uint16_t>>;

[[nodiscard]] int pole_values_needed(int dimensions, const grid::Offsets& shape, bool averaging,
                                     const std::vector<grid::FdtdMedium>& media, const Values<std::uint16_t>& medium,
                                     const std::array<MediumEdges, 3>& edges, const std::string& polarisation,
                                     const std::array<bool, 3>& periodic) {
  grid::FdtdMaterials materials;
  std::vector<double> unused;
  for (std::size_t along = 0; along < edges.size(); ++along) {
    const auto& [cells, its] = edges[along];
    unused.resize(std::max(unused.size(), its.shape(0)));
    materials.edges[along].cells = {cells.data(), cells.shape(0)};
    materials.edges[along].medium = {its.data(), its.shape(0)};
  }
  for (grid::FdtdEdges& along : materials.edges) along.permittivity = along.conductivity = unused;
  materials.media = media;
  materials.medium = {medium.data(), medium.shape(0)};
  const grid::Polarisation its_polarisation = grid::parse_polarisation(polarisation);
  const GilRelease released;
  return grid::pole_values_needed(materials, {shape[0], shape[1], shape[2]}, dimensions, averaging, its_polarisation,
                                  periodic);
}

void bind_media(nb::module_& module) {
  using grid::FdtdMedium;
  module.def(
      "pole_values_needed", &pole_values_needed, "dimensions"_a, "shape"_a, "averaging"_a, "media"_a, "medium"_a,
      "edges"_a, "polarisation"_a = "tm", "periodic"_a = std::array<bool, 3>{},
      "The FdtdOptions.pole_values that these media need, in cells (one number, or one for each cell) and in edges.");
  nb::class_<FdtdMedium>(module, "FdtdMedium", "The poles of a dispersive medium.")
      .def(nb::init<>())
      .def("add_debye", &grid::add_debye, "difference"_a, "relaxation_time"_a)
      .def("add_lorentz", &grid::add_lorentz, "difference"_a, "omega_0"_a, "damping"_a)
      .def("add_drude", &grid::add_drude, "omega_p"_a, "rate"_a)
      .def_ro("conductivity", &FdtdMedium::conductivity, "S/m, of Drude poles at frequency 0.")
      .def_prop_ro("pole_values", &grid::pole_values, "Values of memory that each component of E keeps for it.")
      .def("problem", &grid::problem_of, "time_step"_a, "Why a run cannot have it; empty if it can.")
      .def("permittivity_in_step", &grid::permittivity_in_step, "time_step"_a,
           "What the poles add to the permittivity that a step divides by.")
      .def("permittivity_at_fastest", &grid::permittivity_at_fastest, "time_step"_a,
           "What they add to the permittivity that the time step has to be stable for.");
}

}  // namespace

void bind_grid(nb::module_& module) {
  auto fdtd = nb::class_<Fdtd>(module, "FdtdCore",
                               "The core of headrace.grid.Fdtd: arrays are flat, x fastest, cells have three indices.");
  fdtd.def("__init__", &make_fdtd, "options"_a)
      .def("step", &step_fdtd, "count"_a, "check_every"_a = 0,
           "`check_every` is the number of steps between checks for values that are not finite; 0 for none.")
      .def("check_finite", &Fdtd::check_finite, nb::call_guard<GilRelease>())
      .def("get", &get_field, "field"_a, "as_stored"_a = false,
           nb::sig("def get(self, field: str, as_stored: bool = False) -> numpy.typing.NDArray[Any]"),
           "In V/m or A/m; `as_stored` is for a state, which is restored to the last bit.")
      .def("set", &set_field<float>, "field"_a, "values"_a, "as_stored"_a = false)
      .def("set", &set_field<double>, "field"_a, "values"_a, "as_stored"_a = false)
      .def("resume", &resume, "steps"_a, "traces"_a)
      .def("record_timeline", &Fdtd::record_timeline, "cycles"_a)
      .def("timeline", &timeline,
           "For each piece of work: its part, cycle and name, and when it began and ended, in s.")
      .def_prop_ro("steps_done", &Fdtd::steps_done)
      .def_prop_ro("time_step", &Fdtd::time_step)
      .def_prop_ro("fields", &Fdtd::fields)
      .def_prop_ro("state_fields", &Fdtd::state_fields)
      .def_prop_ro("redundant", [](const Fdtd& self) { return self.simulation().options().redundant; })
      .def_prop_ro("push", [](const Fdtd& self) { return grid::to_string(self.simulation().options().push); })
      .def_prop_ro("mode", [](const Fdtd& self) { return grid::to_string(self.simulation().options().mode); })
      .def_prop_ro("exchanged_bytes", [](const Fdtd& self) { return self.simulation().exchanged_bytes(); })
      .def_prop_ro("moved_bytes", [](const Fdtd& self) { return self.simulation().moved_bytes(); })
      .def_prop_ro("steps_at_once", &steps_at_once, "The fewest steps that a call should do.")
      .def_prop_ro("slabs", &slabs_of,
                   "For a domain in slabs: rows of each, their number, steps of a visit, bytes that a visit copies in "
                   "and out, and bytes on the device and on the host.")
      .def_prop_ro("parts", &parts, "The device of each part of this process, and its cells.");
  bind_points(fdtd);
  bind_media(module);
}

}  // namespace headrace::python
