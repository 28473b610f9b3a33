#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "interrupt.hpp"
#include "measure/copies.hpp"
#include "measure/host_ways.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::CopyCase;
using measure::CopyRoofs;
using measure::CopyRuns;
using measure::HostWayCost;

std::vector<double> all_seconds(const std::vector<Duration>& times) {
  std::vector<double> seconds;
  for (const Duration time : times) seconds.push_back(to_seconds(time));
  return seconds;
}

std::vector<double> seconds_of(const CopyRuns& runs) { return all_seconds(runs.times); }

void bind_copies_results(nb::module_& module) {
  nb::class_<CopyRuns>(module, "CopyRuns", "The results of a copy benchmark, run by run.")
      .def_prop_ro("seconds", &seconds_of, "Seconds of each run, from the first add to the end of the wait.")
      .def_ro("bytes", &CopyRuns::bytes, "Bytes that each run moves.")
      .def_ro("supported", &CopyRuns::supported, "False if the route is not available on this device.")
      .def_ro("verified", &CopyRuns::verified, "Whether the target of every run held the bytes of its sources.")
      .def("__repr__", [](const CopyRuns& runs) {
        return fmt::format("CopyRuns(runs={}, bytes={}, verified={})", runs.times.size(), runs.bytes,
                           runs.verified ? "True" : "False");
      });
  nb::class_<HostWayCost>(module, "HostWayCost", "The cost of one way to move host memory to a device, in seconds.")
      .def_prop_ro("way", [](const HostWayCost& cost) { return std::string(to_string(cost.way)); })
      .def_ro("supported", &HostWayCost::supported, "False if this device or system does not support it.")
      .def_ro("bytes", &HostWayCost::bytes, "Bytes of each pass.")
      .def_prop_ro(
          "once", [](const HostWayCost& cost) { return to_seconds(cost.once); }, "Seconds before the first pass.")
      .def_prop_ro(
          "back", [](const HostWayCost& cost) { return to_seconds(cost.back); }, "Seconds after the last pass.")
      .def_prop_ro(
          "fill", [](const HostWayCost& cost) { return all_seconds(cost.fill); },
          "Seconds of one host thread in each pass.")
      .def_prop_ro(
          "transfer", [](const HostWayCost& cost) { return all_seconds(cost.transfer); },
          "Seconds of transfer in each pass.")
      .def_ro("verified", &HostWayCost::verified);
  nb::class_<CopyRoofs>(module, "CopyRoofs",
                        "The best rates of the link, in bytes per second, one figure for each run.")
      .def_ro("engine", &CopyRoofs::engine, "One large copy from pinned memory.")
      .def_ro("kernel", &CopyRoofs::kernel, "A kernel that streams through pinned memory.");
}

CopyRuns measure_batch(const DeviceOrName& device, std::size_t copy_bytes, std::size_t count, const std::string& layout,
                       bool odd, const std::string& source, const std::string& route, std::uint32_t threads,
                       std::size_t slot_bytes, const std::string& stores, double linger, std::size_t repeats,
                       std::size_t runs) {
  const Device parsed = to_device(device);
  const CopyCase of{
      .copy_bytes = copy_bytes,
      .count = count,
      .layout = measure::parse_copy_layout(layout),
      .odd = odd,
      .source = parse_memory_kind(source),
      .route = parse_copy_route(route),
      .staging = {.threads = threads, .slot_bytes = slot_bytes, .stores = measure::parse_host_stores(stores)},
      .linger = to_duration("linger", linger),
      .repeats = repeats};
  Interruptible interruptible;
  return interruptible.run([&] { return measure_copy_batch(parsed, of, runs, interruptible.token()); });
}

}  // namespace

void bind_copies(nb::module_& module) {
  bind_copies_results(module);
  module.def(
      "copy_batch", &measure_batch, "device"_a = "best", nb::kw_only(), "copy_bytes"_a = kKiB, "count"_a = 65536,
      "layout"_a = "scattered", "odd"_a = false, "source"_a = "pinned", "route"_a = "automatic", "threads"_a = 0,
      "slot_bytes"_a = StagingOptions{}.slot_bytes, "stores"_a = "cached", "linger"_a = 0.0, "repeats"_a = 1,
      "runs"_a = 5,
      "Copies a batch from the host to the device several times, through a CopyBatch.\n\n"
      "`layout` is contiguous, scattered_source or scattered; `odd` puts both sides at odd addresses; `route` is "
      "automatic, engine, batch_call, merged or gather. `threads` (0: by the machine), `slot_bytes` and `stores` "
      "(cached, streaming) say how pageable sources are staged. `linger`: seconds that a kernel stays after a short "
      "batch, to take the next. Every run is verified. Ctrl-C ends it early.");
  module.def(
      "copy_roofs",
      [](const DeviceOrName& device, std::size_t bytes, std::size_t runs) {
        const Device parsed = to_device(device);
        const GilRelease released;
        return measure::measure_copy_roofs(parsed, bytes, runs);
      },
      "device"_a = "best", "bytes"_a = 256 * kMiB, "runs"_a = 5, "Measures the roofs that copies are compared with.");
  module.def(
      "host_ways",
      [](const DeviceOrName& device, std::size_t bytes, std::size_t passes) {
        const Device parsed = to_device(device);
        const GilRelease released;
        return measure::measure_host_ways(parsed, bytes, passes);
      },
      "device"_a = "best", "bytes"_a = 256 * kMiB, "passes"_a = 5,
      "Measures what each way from ordinary host memory to the device costs: pageable, staged, pool, registered, "
      "read.");
}

}  // namespace headrace::python
