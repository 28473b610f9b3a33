#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "receiver_handle.hpp"

/// The packet and frame options of the functions in bind_reception.cpp.
namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::DatagramConfig;

[[nodiscard]] constexpr double seconds_of(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

void bind_faults(nb::module_& module) {
  nb::class_<ingest::Faults>(module, "Faults", "Faults of packets in transit, each with its probability.")
      .def(
          "__init__",
          [](ingest::Faults* self, double loss, double duplication, double corruption, double reordering,
             std::uint32_t reorder_distance, double loss_sent, std::uint64_t seed) {
            new (self) ingest::Faults{.loss = loss,
                                      .duplication = duplication,
                                      .corruption = corruption,
                                      .reordering = reordering,
                                      .reorder_distance = reorder_distance,
                                      .loss_sent = loss_sent,
                                      .seed = seed};
          },
          nb::kw_only(), "loss"_a = 0.0, "duplication"_a = 0.0, "corruption"_a = 0.0, "reordering"_a = 0.0,
          "reorder_distance"_a = 8, "loss_sent"_a = 0.0, "seed"_a = 1,
          "A reordered packet is held back until up to `reorder_distance` others have passed. A super-packet that the "
          "kernel has merged is one packet. `loss_sent` applies to acknowledgements.");
}

void bind_target(nb::module_& module) {
  nb::class_<FrameTarget>(module, "FrameTarget", "Where the frames of a receiver are, and how they get there.")
      .def(
          "__init__",
          [](FrameTarget* self, const DeviceOrName& device, std::size_t frame_bytes, std::uint32_t frame_count,
             const std::string& conversion, const std::string& way, const std::string& ring_access,
             std::uint32_t prompt_count, std::size_t ring_bytes, std::uint32_t burst_packets,
             const std::optional<ingest::Faults>& faults) {
            new (self) FrameTarget{.device = to_device(device),
                                   .options = {.frames = {.frame_bytes = frame_bytes,
                                                          .frame_count = frame_count,
                                                          .conversion = ingest::parse_conversion(conversion)},
                                               .builder = {.way = ingest::parse_copy_way(way),
                                                           .ring_access = ingest::parse_ring_access(ring_access),
                                                           .prompt_count = prompt_count},
                                               .burst_packets = burst_packets},
                                   .ring_bytes = ring_bytes,
                                   .faults = faults};
          },
          "device"_a = "best", nb::kw_only(), "frame_bytes"_a = 64 * kMiB, "frame_count"_a = 4, "conversion"_a = "none",
          "way"_a = "automatic", "ring_access"_a = "automatic", "prompt_count"_a = 0, "ring_bytes"_a = 64 * kMiB,
          "burst_packets"_a = 256, "faults"_a.none() = nb::none(),
          "As for FrameBuilder. While fewer bursts than `prompt_count` are being copied, received data is copied at "
          "once: frames are READY sooner.");
}

void bind_layout(nb::module_& module) {
  nb::class_<DatagramConfig>(module, "DatagramLayout", "How datagrams are numbered, and how they make frames.")
      .def(
          "__init__",
          [](DatagramConfig* self, std::uint32_t payload_bytes, std::uint32_t frame_packets, std::uint16_t port,
             std::optional<std::uint32_t> raw_offset, std::uint32_t number_offset, std::uint32_t number_width,
             bool big_endian, std::optional<std::uint32_t> header_bytes, std::uint32_t window_frames, double timeout,
             std::uint64_t forward_packets, std::uint64_t backward_packets, std::uint32_t part_offset,
             std::uint32_t part_width, std::uint64_t group_bytes) {
            const DatagramConfig config{.port = port,
                                        .raw_offset = raw_offset.value_or(0),
                                        .raw = raw_offset.has_value(),
                                        .number_offset = number_offset,
                                        .number_width = number_width,
                                        .big_endian = big_endian,
                                        .part_offset = part_offset,
                                        .part_width = part_width,
                                        .group_bytes = group_bytes,
                                        .header_bytes = header_bytes.value_or(DatagramConfig::kBehindNumber),
                                        .payload_bytes = payload_bytes,
                                        .frame_packets = frame_packets,
                                        .window_frames = window_frames,
                                        .timeout = static_cast<std::uint64_t>(to_duration("timeout", timeout).count()),
                                        .forward_packets = forward_packets,
                                        .backward_packets = backward_packets};
            new (self) DatagramConfig(checked(config));
          },
          "payload_bytes"_a, "frame_packets"_a, nb::kw_only(), "port"_a = 0, "raw_offset"_a.none() = nb::none(),
          "number_offset"_a = 0, "number_width"_a = 8, "big_endian"_a = true, "header_bytes"_a.none() = nb::none(),
          "window_frames"_a = 2, "timeout"_a = seconds_of(DatagramConfig{}.timeout), "forward_packets"_a = 0,
          "backward_packets"_a = 0, "part_offset"_a = 0, "part_width"_a = 0, "group_bytes"_a = 0,
          "A datagram has `header_bytes` that do not go into the frame (None: up to the end of its number), and up to "
          "`payload_bytes` that do, at its number times that. An incomplete frame is delivered when its first datagram "
          "is `timeout` seconds old, and the next one continues from there. A jump forward by up to `forward_packets` "
          "is a gap; a longer one, or one back by more than `backward_packets`, begins another stream (0: by the width "
          "of the number). With a `part_width` numbers count groups of `group_bytes`, such as frames of video or heaps "
          "of SPEAD, and as many bytes at `part_offset` give the offset of a payload in its group, a multiple of "
          "`payload_bytes`. `raw_offset`: packets are not UDP, and datagrams begin there.")
      .def_prop_ro("frame_bytes", [](const DatagramConfig& config) {
        return std::uint64_t{config.frame_packets} * config.payload_bytes;
      });
}

}  // namespace

void bind_receiver_options(nb::module_& module) {
  bind_faults(module);
  bind_target(module);
  bind_layout(module);
}

}  // namespace headrace::python
