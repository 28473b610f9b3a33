#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "ingest/bench/build_bench.hpp"
#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::BuildCase;
using ingest::BuildRuns;
using ingest::RingCase;

std::vector<double> to_all_seconds(const std::vector<Duration>& times) {
  std::vector<double> seconds;
  for (const Duration time : times) seconds.push_back(to_seconds(time));
  return seconds;
}

void bind_ingest_build_results(nb::module_& module) {
  nb::class_<BuildRuns>(module, "BuildRuns", "The results of placing packets into frames, run by run.")
      .def_prop_ro(
          "seconds", [](const BuildRuns& runs) { return to_all_seconds(runs.times); }, "For each run.")
      .def_prop_ro(
          "plain_seconds", [](const BuildRuns& runs) { return to_all_seconds(runs.plain); },
          "A plain copy of the same number of bytes, alternating with the runs.")
      .def_ro("payload_bytes", &BuildRuns::payload_bytes, "Payload that each run places.")
      .def_ro("packets", &BuildRuns::packets, "For each run.")
      .def_ro("parts", &BuildRuns::parts, "Copies that packets were split into.")
      .def_ro("supported", &BuildRuns::supported, "False if the device does not support this.")
      .def_ro("verified", &BuildRuns::verified, "Whether every byte was where a plain copy puts it.")
      .def("__repr__", [](const BuildRuns& runs) {
        return fmt::format("BuildRuns(runs={}, payload_bytes={}, verified={})", runs.times.size(), runs.payload_bytes,
                           runs.verified ? "True" : "False");
      });
}

BuildCase to_case(const std::string& way, std::uint32_t payload_bytes, std::uint32_t payload_max,
                  std::uint32_t header_bytes, std::uint32_t slot_bytes, std::size_t total_bytes) {
  return {.way = ingest::parse_copy_way(way),
          .payload_bytes = payload_bytes,
          .payload_max = payload_max,
          .header_bytes = header_bytes,
          .slot_bytes = slot_bytes,
          .total_bytes = total_bytes};
}

std::vector<std::string> copy_ways() {
  std::vector<std::string> names;
  for (const ingest::CopyWay way : ingest::all_copy_ways()) names.emplace_back(to_string(way));
  return names;
}

BuildRuns measure_device(const DeviceOrName& device, const std::string& way, std::uint32_t payload_bytes,
                         std::uint32_t payload_max, std::uint32_t header_bytes, std::uint32_t slot_bytes,
                         std::size_t total_bytes, std::size_t runs) {
  const Device parsed = to_device(device);
  const BuildCase of = to_case(way, payload_bytes, payload_max, header_bytes, slot_bytes, total_bytes);
  Interruptible interruptible;
  return interruptible.run([&] { return measure_device_build(parsed, of, runs, interruptible.token()); });
}

BuildRuns measure_ring(const DeviceOrName& device, const std::string& way, const std::string& ring_access,
                       std::uint32_t payload_bytes, std::uint32_t payload_max, std::uint32_t header_bytes,
                       std::uint32_t slot_bytes, std::size_t total_bytes, std::size_t ring_bytes,
                       std::size_t frame_bytes, std::uint32_t frame_count, std::size_t flush_bytes, std::uint32_t burst,
                       std::size_t runs) {
  const Device parsed = to_device(device);
  const RingCase of{.packets = to_case(way, payload_bytes, payload_max, header_bytes, slot_bytes, total_bytes),
                    .ring_access = ingest::parse_ring_access(ring_access),
                    .ring_bytes = ring_bytes,
                    .frame_bytes = frame_bytes,
                    .frame_count = frame_count,
                    .flush_bytes = flush_bytes,
                    .burst = burst};
  Interruptible interruptible;
  return interruptible.run([&] { return measure_ring_build(parsed, of, runs, interruptible.token()); });
}

BuildRuns measure_resident(const DeviceOrName& device, std::uint32_t payload_bytes, std::uint32_t slot_bytes,
                           std::size_t total_bytes, std::size_t ring_bytes, std::size_t frame_bytes,
                           std::uint32_t frame_count, std::uint32_t burst, std::size_t runs) {
  const Device parsed = to_device(device);
  const RingCase of{.packets = {.payload_bytes = payload_bytes, .slot_bytes = slot_bytes, .total_bytes = total_bytes},
                    .ring_bytes = ring_bytes,
                    .frame_bytes = frame_bytes,
                    .frame_count = frame_count,
                    .burst = burst};
  Interruptible interruptible;
  return interruptible.run([&] { return measure_resident_build(parsed, of, runs, interruptible.token()); });
}

}  // namespace

void bind_ingest_build(nb::module_& module) {
  bind_ingest_build_results(module);
  module.def("copy_ways", &copy_ways, "The ways to copy payloads into frames.");
  module.def("device_build", &measure_device, "device"_a = "best", nb::kw_only(), "way"_a = "automatic",
             "payload_bytes"_a = 8000, "payload_max"_a = 0, "header_bytes"_a = 54, "slot_bytes"_a = 0,
             "total_bytes"_a = kGiB, "runs"_a = 5,
             "Places packets that lie in device memory into frames, several times, by one of copy_ways().\n\n"
             "Payloads have `payload_bytes`, or anything up to `payload_max`, after `header_bytes` in slots of "
             "`slot_bytes` (0: just enough); `total_bytes` of slots. Times are the device's. Ctrl-C ends it early.");
  module.def("ring_build", &measure_ring, "device"_a = "best", nb::kw_only(), "way"_a = "automatic",
             "ring_access"_a = "automatic", "payload_bytes"_a = 8000, "payload_max"_a = 0, "header_bytes"_a = 54,
             "slot_bytes"_a = 0, "total_bytes"_a = kGiB, "ring_bytes"_a = 128 * kMiB, "frame_bytes"_a = 64 * kMiB,
             "frame_count"_a = 4, "flush_bytes"_a = 8 * kMiB, "burst"_a = 1024, "runs"_a = 5,
             "The same from a ring in pinned host memory, traversed until `total_bytes` of slots have passed, while a "
             "stream takes every frame. `ring_access` is automatic, direct, slots or payloads. Host time.");
  module.def("resident_build", &measure_resident, "device"_a = "best", nb::kw_only(), "payload_bytes"_a = 8000,
             "slot_bytes"_a = 0, "total_bytes"_a = kGiB, "ring_bytes"_a = 128 * kMiB, "frame_bytes"_a = 64 * kMiB,
             "frame_count"_a = 4, "burst"_a = 1024, "runs"_a = 5,
             "The same with resident control on the device: packets of one TCP connection, which a resident kernel "
             "acknowledges and copies.");
  module.def(
      "build_iterations",
      [](const DeviceOrName& device, const std::string& way, std::uint32_t payload_bytes,
         const std::vector<std::uint32_t>& packets, std::size_t runs) {
        const Device parsed = to_device(device);
        const ingest::CopyWay parsed_way = ingest::parse_copy_way(way);
        const GilRelease released;
        return to_all_seconds(measure_iterations(parsed, parsed_way, payload_bytes, packets, runs));
      },
      "device"_a = "best", nb::kw_only(), "way"_a = "automatic", "payload_bytes"_a = 8000,
      "packets"_a = std::vector<std::uint32_t>{32, 64, 128, 256, 512, 1024}, "runs"_a = 9,
      "Seconds of one iteration of a builder's loop, for each number of packets in it: medians.");
}

}  // namespace headrace::python
