#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "measure/core_round_trips.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

void bind_topology(nb::module_& module) {
  using measure::CoreRoundTrip;
  nb::class_<Processor>(module, "Processor", "A logical processor that this process may run on.")
      .def_ro("os_index", &Processor::os_index, "Its number in the operating system.")
      .def_ro("core", &Processor::core)
      .def_ro("last_level_cache", &Processor::last_level_cache)
      .def_ro("numa_node", &Processor::numa_node)
      .def_ro("package", &Processor::package)
      .def("__repr__",
           [](const Processor& one) { return fmt::format("<headrace.device.Processor {}>", one.os_index); });
  nb::class_<Topology>(module, "Topology", "Processors and caches, as reported by hwloc.")
      .def_static("machine", &Topology::machine, nb::rv_policy::reference, "This machine.")
      .def_static("synthetic", &Topology::synthetic, "description"_a,
                  "A machine in hwloc's description, such as \"numa:2 l3:4 core:4 pu:2\".")
      .def_prop_ro("processors", &Topology::processors)
      .def_prop_ro("core_count", &Topology::core_count)
      .def_prop_ro("last_level_cache_count", &Topology::last_level_cache_count)
      .def(
          "by_cache_distance", [](const Topology& self) { return self.by_cache_distance(); },
          "The processors by cache distance from the first: the order in which threads are bound.")
      .def("describe", &Topology::describe, "One line for each cache: which cores share it.")
      .def("reordering", &Topology::reordering, "Whether the order of cores can matter here, and why.");
  nb::class_<CoreRoundTrip>(module, "CoreRoundTrip", "The time of a word from one processor to another and back.")
      .def_ro("a", &CoreRoundTrip::a)
      .def_ro("b", &CoreRoundTrip::b)
      .def_prop_ro("distance", [](const CoreRoundTrip& self) { return std::string(to_string(self.distance)); })
      .def_prop_ro("round_trip", [](const CoreRoundTrip& self) { return to_seconds(self.round_trip); }, "Seconds.");
  module.def("core_round_trips", &measure::measure_core_round_trips, "each"_a = 4, nb::call_guard<GilRelease>(),
             "The round trip between pairs of processors, at most `each` of every distance from the first; empty on a "
             "machine of one processor.");
}

}  // namespace headrace::python
