#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "ingest/bench/latency_bench.hpp"
#include "ingest/bench/socket_bench.hpp"
#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::LatencyRuns;
using ingest::LatencySample;
using ingest::SocketReception;
using ingest::SocketRun;

void bind_latency_runs(nb::module_& module) {
  nb::class_<LatencySample>(module, "FrameLatencySample", "One run of frame_latency().")
      .def_ro("latency", &LatencySample::latency,
              "For frames: from the arrival of the packet with the last byte until the frame was READY and taken.")
      .def_ro("waited", &LatencySample::waited,
              "For bursts: from the arrival of the first packet until it was taken from the ring. Part of `latency`.")
      .def_ro("bytes_per_second", &LatencySample::bytes_per_second,
              "Payload received: below the scheduled rate if the builder fell behind.")
      .def("__repr__", [](const LatencySample& sample) {
        return fmt::format("FrameLatencySample(frames={}, p50={:.3g} s, p99={:.3g} s)", sample.latency.count,
                           to_seconds(sample.latency.p50), to_seconds(sample.latency.p99));
      });
  nb::class_<LatencyRuns>(module, "FrameLatencies", "How soon after its last byte a frame is READY, run by run.")
      .def_ro("samples", &LatencyRuns::samples)
      .def_prop_ro(
          "alone_seconds", [](const LatencyRuns& runs) { return to_seconds(runs.alone); },
          "Median for one packet that completes a frame while nothing else happens.")
      .def_ro("reached_per_second", &LatencyRuns::reached_per_second, "Payload if packets always wait.")
      .def_ro("bytes_per_second", &LatencyRuns::bytes_per_second, "Scheduled rate of payload.")
      .def_ro("burst_bytes", &LatencyRuns::burst_bytes, "Payload submitted at once: the mean of the samples.")
      .def_ro("supported", &LatencyRuns::supported, "False if the device does not support this.")
      .def_ro("verified", &LatencyRuns::verified, "Whether the last frames of every sample held what was sent.")
      .def("__repr__", [](const LatencyRuns& runs) {
        return fmt::format("FrameLatencies(samples={}, bytes_per_second={:.4g}, verified={})", runs.samples.size(),
                           runs.bytes_per_second, runs.verified ? "True" : "False");
      });
}

LatencyRuns measure_latency(const DeviceOrName& device, const std::string& control, const std::string& way,
                            const std::string& ring_access, std::uint32_t payload_bytes, std::uint32_t header_bytes,
                            std::uint32_t slot_bytes, std::size_t ring_bytes, std::size_t frame_bytes,
                            std::uint32_t frame_count, std::size_t flush_bytes, std::uint32_t list_count,
                            std::uint32_t prompt_count, std::uint32_t burst, double load, double bytes_per_second,
                            std::uint64_t frames, std::size_t samples) {
  const Device parsed = to_device(device);
  const ingest::LatencyCase of{.control = ingest::parse_control(control),
                               .ring = {.packets = {.way = ingest::parse_copy_way(way),
                                                    .payload_bytes = payload_bytes,
                                                    .header_bytes = header_bytes,
                                                    .slot_bytes = slot_bytes},
                                        .ring_access = ingest::parse_ring_access(ring_access),
                                        .ring_bytes = ring_bytes,
                                        .frame_bytes = frame_bytes,
                                        .frame_count = frame_count,
                                        .flush_bytes = flush_bytes,
                                        .burst = burst},
                               .list_count = list_count,
                               .prompt_count = prompt_count,
                               .bytes_per_second = bytes_per_second,
                               .load = load,
                               .frames = frames};
  Interruptible interruptible;
  return interruptible.run([&] { return measure_frame_latency(parsed, of, samples, interruptible.token()); });
}

void bind_socket(nb::module_& module) {
  nb::class_<SocketRun>(module, "SocketRun", "One transfer of SocketReception.")
      .def_prop_ro(
          "seconds", [](const SocketRun& run) { return to_seconds(run.took); }, "Until the last frame was checked.")
      .def_ro("bytes", &SocketRun::bytes)
      .def_ro("frames", &SocketRun::frames)
      .def_ro("right", &SocketRun::right, "Whether the checked parts of frames held what was sent.")
      .def("__repr__", [](const SocketRun& run) {
        return fmt::format("SocketRun(bytes={}, seconds={:.3g}, right={})", run.bytes, to_seconds(run.took),
                           run.right ? "True" : "False");
      });
  nb::class_<SocketReception>(module, "SocketReception",
                              "Frames on a device through the kernel's own receiver: recv() into pinned memory, and "
                              "asynchronous copies from there. A baseline for Receiver.")
      .def(
          "__init__",
          [](SocketReception* self, const DeviceOrName& device, std::size_t frame_bytes, std::uint32_t frame_count,
             std::size_t chunk_bytes, std::uint32_t chunk_count, std::uint64_t seed) {
            new (self) SocketReception(to_device(device), {.frame_bytes = frame_bytes,
                                                           .frame_count = frame_count,
                                                           .chunk_bytes = chunk_bytes,
                                                           .chunk_count = chunk_count,
                                                           .seed = seed});
          },
          "device"_a = "best", nb::kw_only(), "frame_bytes"_a = 64 * kMiB, "frame_count"_a = 4, "chunk_bytes"_a = kMiB,
          "chunk_count"_a = 8, "seed"_a = 1,
          "A chunk is received and copied at once. `seed` is that of the stream_bytes() that are sent.")
      .def(
          "receive",
          [](SocketReception& self, int connection, bool whole) {
            Interruptible interruptible;
            return interruptible.run([&] { return self.receive(connection, whole, interruptible.token()); });
          },
          "connection"_a, nb::kw_only(), "whole"_a = false,
          "Reads the descriptor of a connected socket until its peer ends it. With `whole`, compares every byte with "
          "what was sent; otherwise both ends of each frame.");
}

}  // namespace

void bind_ingest_measure(nb::module_& module) {
  bind_latency_runs(module);
  module.def("frame_latency", &measure_latency, "device"_a = "best", nb::kw_only(), "control"_a = "host",
             "way"_a = "automatic", "ring_access"_a = "automatic", "payload_bytes"_a = 8000, "header_bytes"_a = 54,
             "slot_bytes"_a = 0, "ring_bytes"_a = 128 * kMiB, "frame_bytes"_a = kMiB, "frame_count"_a = 16,
             "flush_bytes"_a = 256 * kKiB, "list_count"_a = 4, "prompt_count"_a = 1, "burst"_a = 256, "load"_a = 0.5,
             "bytes_per_second"_a = 0.0, "frames"_a = 10'000, "samples"_a = 5,
             "How soon after its last byte a frame is READY, while packets come evenly to a ring in pinned host memory "
             "at `bytes_per_second` of payload, or at `load` of what the same builder reaches if they always wait. "
             "`frames` in each of the `samples`. With `control` 'resident' a resident kernel on the device decides and "
             "builds, and packets are those of a TCP connection: `way`, `ring_access`, `flush_bytes`, `list_count` and "
             "`prompt_count` are ignored. Ctrl-C ends it early.");
  bind_socket(module);
}

}  // namespace headrace::python
