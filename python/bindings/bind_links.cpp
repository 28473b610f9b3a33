#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/device/detail/health.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/measure/links.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::LinkCurve;
using measure::LinkMeans;
using measure::LinkMemory;
using measure::LinkOptions;
using measure::LinkPath;
using measure::LinkPoint;
using measure::LinkRoute;

void bind_health(nb::module_& module) {
  nb::class_<DeviceHealth>(
      module, "DeviceHealth",
      "What the management library reports for a device at this moment; None for what it does not report.")
      .def_ro("absence", &DeviceHealth::absence, "Why it reports nothing at all; empty if it does.")
      .def_ro("persistence", &DeviceHealth::persistence)
      .def_ro("bar1_bytes", &DeviceHealth::bar1_bytes,
              "The window through which PCIe peers and the host see its memory.")
      .def_ro("link_generation", &DeviceHealth::link_generation,
              "Current PCIe generation; an idle device may run at a lower rate.")
      .def_ro("link_width", &DeviceHealth::link_width)
      .def_ro("link_generation_max", &DeviceHealth::link_generation_max,
              "The generation that device and machine agree on.")
      .def_ro("link_width_max", &DeviceHealth::link_width_max)
      .def_ro("device_generation_max", &DeviceHealth::device_generation_max,
              "The highest generation of the device in any machine.")
      .def_ro("nvlink_count", &DeviceHealth::nvlink_count, "NVLinks that are up.")
      .def_ro("near_processors", &DeviceHealth::near_processors);
  module.def(
      "read_health", [](const DeviceOrName& device) { return read_health(to_device(device)); }, "device"_a,
      "Reads what the management library reports for a device at the moment; nothing for a CPU device.");
  nb::class_<PeerConnection>(module, "PeerConnection", "How two devices are joined.")
      .def_prop_ro("way", [](const PeerConnection& self) { return std::string(to_string(self.way)); })
      .def_ro("access", &PeerConnection::access, "Whether kernels of the first can access the memory of the second.")
      .def_ro("native_atomics", &PeerConnection::native_atomics);
  module.def(
      "peer_connection",
      [](const DeviceOrName& from, const DeviceOrName& to) { return peer_connection(to_device(from), to_device(to)); },
      "from_device"_a, "to_device"_a, "How one device reaches the memory of another.");
}

void bind_route(nb::module_& module) {
  nb::class_<LinkRoute>(module, "LinkRoute", "A route of bytes: from which memory to which, and by what means.")
      .def_prop_ro(
          "device", [](const LinkRoute& self) { return self.device; }, "The device that does the work.")
      .def_prop_ro(
          "path", [](const LinkRoute& self) { return std::string(to_string(self.path)); },
          "\"to device\", \"from device\", \"both ways\", \"within\", \"from peer\", \"to peer\" or \"both peers\".")
      .def_prop_ro("memory", [](const LinkRoute& self) { return std::string(to_string(self.memory)); })
      .def_prop_ro(
          "means", [](const LinkRoute& self) { return std::string(to_string(self.means)); },
          "\"engine\" or \"kernel\".")
      .def_prop_ro("peer", [](const LinkRoute& self) { return self.peer; })
      .def_ro("peer_access", &LinkRoute::peer_access)
      .def("__repr__", [](const LinkRoute& self) {
        return fmt::format("<headrace.measure.LinkRoute {} {} {} {}>", self.device.name(), to_string(self.path),
                           to_string(self.memory), to_string(self.means));
      });
  module.def(
      "link_routes",
      [](const DeviceOrName& device, const std::optional<DeviceOrName>& peer) {
        return measure::link_routes(to_device(device), peer ? std::optional(to_device(*peer)) : std::nullopt);
      },
      "device"_a, "peer"_a = nb::none(),
      "Every route of a device to the host and within itself; with `peer`, those between the two instead.");
  module.def("why_not", &measure::why_not, "route"_a,
             "Why a route cannot be measured; empty if it can be tried. Raises UsageError for an invalid route.");
}

void bind_curve(nb::module_& module) {
  nb::class_<LinkPoint>(module, "LinkPoint", "The rate of a link at one size of transfer.")
      .def_ro("bytes", &LinkPoint::bytes)
      .def_ro("rate", &LinkPoint::rate, "Bytes per second, of several transfers queued; median.")
      .def_ro("least", &LinkPoint::least)
      .def_ro("most", &LinkPoint::most)
      .def_prop_ro(
          "alone", [](const LinkPoint& self) { return to_seconds(self.alone); },
          "Seconds of one transfer by itself; median.")
      .def_ro("samples", &LinkPoint::samples)
      .def_ro("verified", &LinkPoint::verified);
  nb::class_<LinkCurve>(module, "LinkCurve", "The rate of a route by size of transfer.")
      .def_ro("route", &LinkCurve::route)
      .def_ro("points", &LinkCurve::points)
      .def_ro("gated", &LinkCurve::gated,
              "Whether the device timed it from behind a gate, which excludes the time to enqueue.")
      .def_ro("note", &LinkCurve::note, "Why there are no points, or a remark on them.")
      .def("saturation_bytes", &measure::saturation_bytes, "share"_a = 0.9,
           "The smallest size that reaches that share of the best rate; 0 without points.");
  const auto options_of = [](std::vector<std::size_t> sizes, int samples, std::size_t bytes_per_sample,
                             std::uint64_t seed) {
    LinkOptions options;
    options.sizes = std::move(sizes);
    options.samples = samples;
    options.bytes_per_sample = bytes_per_sample;
    options.seed = seed;
    return options;
  };
  module.def(
      "links_at_once",
      [options_of](const std::vector<LinkRoute>& routes, std::vector<std::size_t> sizes, int samples,
                   std::size_t bytes_per_sample, std::uint64_t seed) {
        const LinkOptions options = options_of(std::move(sizes), samples, bytes_per_sample, seed);
        const GilRelease released;
        return measure::measure_links_at_once(routes, options);
      },
      "routes"_a, "sizes"_a, "samples"_a = 5, "bytes_per_sample"_a = LinkOptions{}.bytes_per_sample, "seed"_a = 1,
      "Measures several routes while all of them are busy: a curve for each. Raises as link() does.");
  module.def(
      "link",
      [options_of](const LinkRoute& route, std::vector<std::size_t> sizes, int samples, std::size_t bytes_per_sample,
                   std::uint64_t seed) {
        const LinkOptions options = options_of(std::move(sizes), samples, bytes_per_sample, seed);
        const GilRelease released;
        return measure::measure_link(route, options);
      },
      "route"_a, "sizes"_a, "samples"_a = 5, "bytes_per_sample"_a = LinkOptions{}.bytes_per_sample, "seed"_a = 1,
      "Measures one route. Raises UsageError for sizes that do not ascend or are not multiples of 16.");
  module.def("link_sizes", &measure::link_sizes, "least"_a, "most"_a, "factor"_a,
             "Sizes from `least` to `most`, each `factor` times the previous one.");
  module.def("pcie_rate", &measure::pcie_rate, "generation"_a.none(), "width"_a.none(),
             "The one-way rate of such a PCIe link, in bytes per second; None if either is unknown.");
}

}  // namespace

void bind_links(nb::module_& module) {
  bind_health(module);
  bind_route(module);
  bind_curve(module);
}

}  // namespace headrace::python
