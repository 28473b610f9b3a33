#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bindings.hpp"
#include "convert.hpp"
#include "frame_handle.hpp"
#include "headrace/base/bytes.hpp"
#include "headrace/ingest/capture_source.hpp"
#include "headrace/ingest/packet_socket_source.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "headrace/ingest/tun_source.hpp"
#include "headrace/ingest/udp_source.hpp"
#include "headrace/ingest/xdp_source.hpp"
#include "receiver_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::DatagramConfig;
using ingest::Delivery;

constexpr std::size_t kMergedBytes = 65536;
/// Ethernet with tags, beside the MTU.
constexpr std::size_t kLinkBytes = 32;

struct StreamOpened {
  std::uint32_t stream;
  std::string peer;
};

struct StreamEnded {
  std::uint32_t stream;
  std::string peer;
  std::string reason;
  std::uint64_t bytes;
};

std::unique_ptr<ReceiverHandle> receive_tcp(FrameTarget target, const std::string& address, std::uint16_t port,
                                            std::uint32_t connections, std::uint32_t mtu, bool offloads,
                                            const std::string& name, std::uint32_t window_bytes, double idle_seconds,
                                            const std::string& interface, const std::string& control,
                                            bool close_when_finished, bool trust_checksums) {
  target.options.control = ingest::parse_control(control);
  ingest::TcpReception tcp;
  tcp.connections = connections;
  tcp.config.port = port;
  tcp.config.mtu = static_cast<std::uint16_t>(std::clamp<std::uint32_t>(mtu, 576, 65535));
  tcp.config.window_bytes_max = window_bytes;
  tcp.config.close_when_finished = close_when_finished;
  tcp.config.idle_max = static_cast<std::uint64_t>(to_duration("idle_seconds", idle_seconds).count());
  const nb::gil_scoped_release released;
  if (!interface.empty()) {
    const auto open = [&](Ring& ring, std::string& at, std::string& on) {
      at = fmt::format("{}:{}", address, port);
      on = interface;
      return ingest::open_xdp(ring, {.interface = interface, .address = address, .trust_checksums = trust_checksums});
    };
    return std::make_unique<ReceiverHandle>(target, mtu + kLinkBytes, open, tcp);
  }
  const auto open = [&](Ring& ring, std::string& at, std::string& on) -> std::unique_ptr<ingest::Source> {
    auto tun = ingest::open_tun(ring, {.address = address, .name = name, .mtu = mtu, .offloads = offloads});
    const std::uint32_t own = tun->address();
    at = fmt::format("{}.{}.{}.{}:{}", own >> 24, own >> 16 & 255, own >> 8 & 255, own & 255, port);
    on = tun->name();
    return tun;
  };
  return std::make_unique<ReceiverHandle>(target, offloads ? kMergedBytes : mtu, open, tcp);
}

std::unique_ptr<ReceiverHandle> receive_udp(const FrameTarget& target, const DatagramConfig& layout,
                                            const std::string& address, const std::string& multicast_group,
                                            const std::string& interface, std::size_t kernel_buffer_bytes) {
  const nb::gil_scoped_release released;
  const auto open = [&](Ring& ring, std::string& at, std::string& on) -> std::unique_ptr<ingest::Source> {
    auto udp = ingest::open_udp(ring, {.address = address,
                                       .port = layout.port,
                                       .multicast_group = multicast_group,
                                       .interface = interface,
                                       .kernel_buffer_bytes = kernel_buffer_bytes});
    at = fmt::format("{}:{}", address, udp->port());
    on = interface;
    return udp;
  };
  return std::make_unique<ReceiverHandle>(target, kMergedBytes, open, ingest::DatagramReception{.config = layout});
}

std::unique_ptr<ReceiverHandle> receive_packets(const FrameTarget& target, const DatagramConfig& layout,
                                                const std::string& interface, const std::string& via,
                                                const std::string& address, bool promiscuous, bool trust_checksums) {
  if (via != "packet" && via != "xdp") throw UsageError(fmt::format("'{}' is not a way to packets: packet, xdp", via));
  const std::uint16_t udp_port = layout.raw ? std::uint16_t{0} : layout.port;
  const nb::gil_scoped_release released;
  const auto open = [&](Ring& ring, std::string& at, std::string& on) {
    at = fmt::format("{}:{}", address, udp_port);
    on = interface;
    if (via == "xdp") {
      return ingest::open_xdp(
          ring, {.interface = interface, .address = address, .udp_port = udp_port, .trust_checksums = trust_checksums});
    }
    return ingest::open_packet_socket(ring, {.interface = interface, .udp_port = udp_port, .promiscuous = promiscuous});
  };
  return std::make_unique<ReceiverHandle>(target, kMergedBytes, open, ingest::DatagramReception{.config = layout});
}

std::unique_ptr<ReceiverHandle> receive_capture(const FrameTarget& target, const DatagramConfig& layout,
                                                const std::string& path, double speed) {
  const nb::gil_scoped_release released;
  const auto open = [&](Ring& ring, std::string& at, std::string& /*on*/) {
    at = path;
    return ingest::open_capture(ring, path, {.speed = speed});
  };
  return std::make_unique<ReceiverHandle>(target, kMergedBytes, open,
                                          ingest::DatagramReception{.config = layout, .wait_for_space = speed == 0});
}

std::unique_ptr<ReceiverHandle> receive_synthetic(const FrameTarget& target, const DatagramConfig& layout,
                                                  std::uint64_t packets, double packets_per_second, std::uint64_t seed,
                                                  bool payloads_once) {
  const nb::gil_scoped_release released;
  const std::uint32_t payload = layout.header_bytes + layout.payload_bytes;
  const auto open = [&](Ring& ring, std::string& at, std::string& /*on*/) {
    at = "synthetic";
    return ingest::make_synthetic_source(ring, {.payloads = {{.bytes = payload}},
                                                .sequence_offset = layout.number_offset,
                                                .sequence_bytes = layout.number_width,
                                                .packets = packets,
                                                .packets_per_second = packets_per_second,
                                                .port = layout.port,
                                                .checksums = false,
                                                .payloads_once = payloads_once,
                                                .seed = seed});
  };
  constexpr std::size_t kHeaders = 14 + 20 + 8;
  return std::make_unique<ReceiverHandle>(
      target, payload + kHeaders, open,
      ingest::DatagramReception{.config = layout, .wait_for_space = packets_per_second == 0});
}

nb::object to_python(Delivery delivery) {
  const std::string peer = peer_of(delivery.flow);
  switch (delivery.kind) {
    case Delivery::Kind::opened: return nb::cast(StreamOpened{delivery.stream, peer});
    case Delivery::Kind::ended:
      return nb::cast(StreamEnded{delivery.stream, peer, std::string(to_string(delivery.end)), delivery.stream_bytes});
    case Delivery::Kind::part:
      return nb::cast(PartHandle{FrameHandle{std::move(delivery.frame), delivery.stream, peer}});
    case Delivery::Kind::frame: break;
  }
  return nb::cast(FrameHandle{std::move(delivery.frame), delivery.stream, peer});
}

/// What comes next, empty where nothing does by the deadline or any more. Looks for signals twenty times a second.
std::optional<Delivery> wait_next(ReceiverHandle& self, Time deadline) {
  constexpr Duration kLook = std::chrono::milliseconds(50);
  while (true) {
    std::optional<Delivery> delivery;
    bool over = false;
    {
      const nb::gil_scoped_release released;
      const Time now = SteadyClock::now();
      delivery = self.receiver().next(std::clamp(deadline - now, Duration{}, kLook));
      over = !delivery && (SteadyClock::now() >= deadline || self.receiver().ended());
    }
    if (delivery || over) return delivery;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::object next_frame(ReceiverHandle& self) {
  while (auto delivery = wait_next(self, Time::max())) {
    if (delivery->kind == Delivery::Kind::frame) return to_python(*std::move(delivery));
  }
  throw nb::stop_iteration();
}

nb::object next_any(ReceiverHandle& self, std::optional<double> timeout) {
  auto delivery = wait_next(self, to_deadline(timeout));
  return delivery ? to_python(*std::move(delivery)) : nb::none();
}

void send(ReceiverHandle& self, std::uint32_t stream, const nb::bytes& data) {
  const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
  const Status sent = self.receiver().send(stream, bytes);
  if (!sent && sent.error().code == Errc::full) {
    throw DeviceError(Errc::full, fmt::format("answering stream {}: more than {} would wait to be sent", stream,
                                              format_bytes(ingest::Receiver::kAnswerBytesMax)));
  }
  sent.or_throw("answering");
}

void stop(ReceiverHandle& self) {
  const nb::gil_scoped_release released;
  self.receiver().stop();
}

void bind_options(nb::module_& module) {
  nb::class_<ingest::Faults>(module, "Faults", "What happens to packets on their way, each by its probability.")
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
          "A packet that is reordered is held back until up to `reorder_distance` others have passed. A super-packet "
          "that the kernel has merged is one packet. `loss_sent` is of acknowledgements.");
  nb::class_<FrameTarget>(module, "FrameTarget", "Where the frames of a receiver lie, and how they get there.")
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
          "As for FrameBuilder. While fewer bursts than `prompt_count` are being copied, whatever has come is copied "
          "at "
          "once: frames are READY sooner.");
  nb::class_<DatagramConfig>(module, "DatagramLayout", "How datagrams are numbered, and how they make frames.")
      .def(
          "__init__",
          [](DatagramConfig* self, std::uint32_t payload_bytes, std::uint32_t frame_packets, std::uint16_t port,
             std::optional<std::uint32_t> raw_offset, std::uint32_t number_offset, std::uint32_t number_width,
             bool big_endian, std::optional<std::uint32_t> header_bytes, std::uint32_t window_frames, double timeout) {
            const DatagramConfig config{.port = port,
                                        .raw_offset = raw_offset.value_or(0),
                                        .raw = raw_offset.has_value(),
                                        .number_offset = number_offset,
                                        .number_width = number_width,
                                        .big_endian = big_endian,
                                        .header_bytes = header_bytes.value_or(number_offset + number_width),
                                        .payload_bytes = payload_bytes,
                                        .frame_packets = frame_packets,
                                        .window_frames = window_frames,
                                        .timeout = static_cast<std::uint64_t>(to_duration("timeout", timeout).count())};
            check(config);
            new (self) DatagramConfig(config);
          },
          "payload_bytes"_a, "frame_packets"_a, nb::kw_only(), "port"_a = 0, "raw_offset"_a.none() = nb::none(),
          "number_offset"_a = 0, "number_width"_a = 8, "big_endian"_a = true, "header_bytes"_a.none() = nb::none(),
          "window_frames"_a = 2, "timeout"_a = 1.0,
          "A datagram has `header_bytes` that do not go into the frame (None: up to the end of its number), and "
          "`payload_bytes` that do, at its number times that. A frame is closed with its gaps `timeout` seconds after "
          "its first datagram: longer than a whole frame takes to come. `raw_offset`: packets are not UDP, and "
          "datagrams begin there.")
      .def_prop_ro("frame_bytes", [](const DatagramConfig& config) {
        return std::uint64_t{config.frame_packets} * config.payload_bytes;
      });
}

void bind_events(nb::module_& module) {
  nb::class_<StreamOpened>(module, "StreamOpened", "A sender has connected, or its first datagram has come.")
      .def_ro("stream", &StreamOpened::stream, "Streams count from 0.")
      .def_ro("peer", &StreamOpened::peer, "Who sends: '10.0.0.1:40000'; empty where that is not known.")
      .def("__repr__", [](const StreamOpened& event) {
        return fmt::format("StreamOpened(stream={}, peer='{}')", event.stream, event.peer);
      });
  nb::class_<StreamEnded>(module, "StreamEnded", "No more frames will come of a stream.")
      .def_ro("stream", &StreamEnded::stream)
      .def_ro("peer", &StreamEnded::peer)
      .def_ro("reason", &StreamEnded::reason,
              "finished: the sender said that this was all; reset or timed out: the stream is what came in order until "
              "then; cut: the receiver was stopped.")
      .def_ro("bytes", &StreamEnded::bytes, "Of the stream.")
      .def("__repr__", [](const StreamEnded& event) {
        return fmt::format("StreamEnded(stream={}, peer='{}', reason='{}', bytes={})", event.stream, event.peer,
                           event.reason, event.bytes);
      });
}

void bind_receivers(nb::module_& module) {
  nb::class_<ReceiverHandle>(module, "Receiver",
                             "Receives on a thread of its own. Iterating waits for frames, of all streams, and ends "
                             "with the source; next() gives what happens to streams as well. A context manager, which "
                             "stops it. Frames stay valid.")
      .def_prop_ro("address", &ReceiverHandle::address, "To send to, '198.18.0.2:9000'; else what is read.")
      .def_prop_ro("interface", &ReceiverHandle::interface, "The network device in use; empty where there is none.")
      .def("next", &next_any, "timeout"_a.none() = nb::none(),
           nb::sig("def next(self, timeout: float | None = None) -> StreamOpened | Frame | FramePart | StreamEnded | "
                   "None"),
           "What comes next, of any stream. None after `timeout` seconds, or when nothing will come: see ended.")
      .def_prop_ro(
          "ended", [](ReceiverHandle& self) { return self.receiver().ended(); }, "Nothing will come any more.")
      .def(
          "reset", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().reset(stream); }, "stream"_a,
          "Resets the TCP connection of a stream that is not wanted any more.")
      .def("send", &send, "stream"_a, "data"_a,
           "Says `data` on a stream's TCP connection, behind what was said before: short answers, some 1 KiB a round "
           "trip. Does nothing where the connection is no more. Raises DeviceError (Errc.full) while 1 MiB waits to be "
           "sent; UsageError, as close() and peek(), for datagrams and with resident control.")
      .def(
          "close", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().close(stream); }, "stream"_a,
          "Nothing more will be said on the connection: FIN follows what waits. What its peer sends still comes.")
      .def(
          "peek",
          [](ReceiverHandle& self, std::uint32_t stream, std::uint64_t offset) {
            self.receiver().peek(stream, offset);
          },
          "stream"_a, "offset"_a,
          "Asks for bytes of a stream from `offset` on before their frame is full: next() gives a FramePart, once, as "
          "soon as some have come in order, unless their frame comes first. Raises UsageError for frames that are "
          "converted.")
      .def("stop", &stop, "Resets connections that are open. What is waiting may still be taken.")
      .def("counters", &counters_of, nb::sig("def counters(self) -> dict[str, dict[str, int]]"),
           "What has been seen so far, 50 ms old at most: see docs/ingest.md.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> Receiver"))
      .def("__next__", &next_frame, nb::sig("def __next__(self) -> Frame"))
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Receiver"))
      .def(
          "__exit__", [](ReceiverHandle& self, const nb::args&) { stop(self); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

void bind_sources(nb::module_& module) {
  module.def("receive_tcp", &receive_tcp, "target"_a, "address"_a, "port"_a, nb::kw_only(), "connections"_a = 64,
             "mtu"_a = 1500, "offloads"_a = true, "name"_a = "headrace%d", "window_bytes"_a = 16 * kMiB,
             "idle_seconds"_a = 0.0, "interface"_a = "", "control"_a = "host", "close_when_finished"_a = true,
             "trust_checksums"_a = false);
  module.def("receive_udp", &receive_udp, "target"_a, "layout"_a, "address"_a, nb::kw_only(), "multicast_group"_a = "",
             "interface"_a = "", "kernel_buffer_bytes"_a = 8 * kMiB);
  module.def("receive_packets", &receive_packets, "target"_a, "layout"_a, "interface"_a, nb::kw_only(), "via"_a,
             "address"_a = "", "promiscuous"_a = false, "trust_checksums"_a = false);
  module.def("receive_capture", &receive_capture, "target"_a, "layout"_a, "path"_a, nb::kw_only(), "speed"_a = 0.0);
  module.def("receive_synthetic", &receive_synthetic, "target"_a, "layout"_a, nb::kw_only(), "packets"_a = 0,
             "packets_per_second"_a = 0.0, "seed"_a = 1, "payloads_once"_a = false);
}

}  // namespace

void bind_receiver(nb::module_& module) {
  bind_options(module);
  bind_events(module);
  bind_receivers(module);
  bind_sources(module);
}

}  // namespace headrace::python
