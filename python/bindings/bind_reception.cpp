#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/ingest/capture_source.hpp"
#include "headrace/ingest/detail/capabilities.hpp"
#include "headrace/ingest/follow.hpp"
#include "headrace/ingest/packet_socket_source.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "headrace/ingest/tun_source.hpp"
#include "headrace/ingest/udp_source.hpp"
#include "headrace/ingest/xdp_source.hpp"
#include "ingest/slot_lead.hpp"
#include "receiver_handle.hpp"

/// Receivers, with one function for each source of packets.
namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::DatagramConfig;
using ingest::Layer;
using ingest::Transport;

constexpr std::size_t kMergedBytes = 65536;
/// Ethernet with tags, in addition to the MTU.
constexpr std::size_t kLinkBytes = 32;

SlotShape merged_slots(const DatagramConfig& layout, Layer layer) {
  return {kMergedBytes, ingest::slot_lead(layer, Transport::udp, layout.header_bytes)};
}

/// The senders whose datagrams are accepted, the same for all datagram sources.
struct Senders {
  std::vector<std::string> from;
  std::uint32_t count;
  double idle_seconds;

  [[nodiscard]] ingest::DatagramReception reception(const DatagramConfig& layout, bool wait_for_space = false) const {
    ingest::DatagramReception made{.config = layout, .wait_for_space = wait_for_space, .senders = count};
    made.idle = to_duration("idle_seconds", idle_seconds);
    for (const std::string& one : from) made.from.push_back(ingest::parse_sender(one));
    return made;
  }
};

std::unique_ptr<ReceiverHandle> receive_tcp(FrameTarget target, const std::string& address, std::uint16_t port,
                                            std::uint32_t connections, std::uint32_t mtu, bool offloads,
                                            const std::string& name, std::uint32_t window_bytes, double idle_seconds,
                                            const std::string& interface, const std::string& control,
                                            bool close_when_finished, bool trust_checksums, double first_byte_seconds,
                                            bool open_at_first_byte, std::uint32_t backlog, std::size_t memory_bytes) {
  target.options.control = ingest::parse_control(control);
  ingest::TcpReception tcp;
  tcp.connections = connections;
  tcp.config.port = port;
  tcp.config.mtu = static_cast<std::uint16_t>(std::clamp<std::uint32_t>(mtu, 576, 65535));
  tcp.config.window_bytes_max = window_bytes;
  tcp.config.close_when_finished = close_when_finished;
  tcp.config.idle_max = static_cast<std::uint64_t>(to_duration("idle_seconds", idle_seconds).count());
  tcp.config.first_byte_max = static_cast<std::uint64_t>(to_duration("first_byte_seconds", first_byte_seconds).count());
  tcp.config.open_at_first_byte = open_at_first_byte;
  tcp.config.backlog = backlog;
  target.options.memory_bytes_max = memory_bytes;
  const GilRelease released;
  if (!interface.empty()) {
    const auto open = [&](Ring& ring, std::string& at, std::string& on) {
      at = fmt::format("{}:{}", address, port);
      on = interface;
      return ingest::open_xdp(ring, {.interface = interface, .address = address, .trust_checksums = trust_checksums});
    };
    return std::make_unique<ReceiverHandle>(
        target, SlotShape{mtu + kLinkBytes, ingest::slot_lead(Layer::ethernet, Transport::tcp)}, open, tcp);
  }
  const auto open = [&](Ring& ring, std::string& at, std::string& on) -> std::unique_ptr<ingest::Source> {
    auto tun = ingest::open_tun(ring, {.address = address, .name = name, .mtu = mtu, .offloads = offloads});
    at = ingest::to_string(tun->address(), port);
    on = tun->name();
    return tun;
  };
  const int version = address.find(':') == std::string::npos ? 4 : 6;
  const SlotShape slots{offloads ? kMergedBytes : mtu, ingest::slot_lead(Layer::ip, Transport::tcp, 0, version)};
  return std::make_unique<ReceiverHandle>(target, slots, open, tcp);
}

std::unique_ptr<ReceiverHandle> receive_udp(const FrameTarget& target, const DatagramConfig& layout,
                                            const std::string& address, const std::string& multicast_group,
                                            const std::string& interface, std::size_t kernel_buffer_bytes,
                                            const std::vector<std::string>& from, std::uint32_t senders,
                                            double idle_seconds) {
  const ingest::DatagramReception reception = Senders{from, senders, idle_seconds}.reception(layout);
  const GilRelease released;
  const auto open = [&](Ring& ring, std::string& at, std::string& on) -> std::unique_ptr<ingest::Source> {
    auto udp = ingest::open_udp(ring, {.address = address,
                                       .port = layout.port,
                                       .multicast_group = multicast_group,
                                       .interface = interface,
                                       .kernel_buffer_bytes = kernel_buffer_bytes});
    const bool is_v6 = address.find(':') != std::string::npos;
    at = is_v6 ? fmt::format("[{}]:{}", address, udp->port()) : fmt::format("{}:{}", address, udp->port());
    on = interface;
    return udp;
  };
  return std::make_unique<ReceiverHandle>(target, merged_slots(layout, Layer::payload), open, reception);
}

std::unique_ptr<ReceiverHandle> receive_packets(const FrameTarget& target, const DatagramConfig& layout,
                                                const std::string& interface, const std::string& via,
                                                const std::string& address, bool promiscuous, bool trust_checksums,
                                                const std::vector<std::string>& from, std::uint32_t senders,
                                                double idle_seconds) {
  const ingest::DatagramReception reception = Senders{from, senders, idle_seconds}.reception(layout);
  if (via != "packet" && via != "xdp")
    throw UsageError(fmt::format("'{}' is not a way to receive packets: packet, xdp", via));
  const std::uint16_t udp_port = layout.raw ? std::uint16_t{0} : layout.port;
  const GilRelease released;
  const auto open = [&](Ring& ring, std::string& at, std::string& on) {
    at = fmt::format("{}:{}", address, udp_port);
    on = interface;
    if (via == "xdp") {
      return ingest::open_xdp(
          ring, {.interface = interface, .address = address, .udp_port = udp_port, .trust_checksums = trust_checksums});
    }
    return ingest::open_packet_socket(ring, {.interface = interface, .udp_port = udp_port, .promiscuous = promiscuous});
  };
  return std::make_unique<ReceiverHandle>(target, merged_slots(layout, Layer::ethernet), open, reception);
}

std::unique_ptr<ReceiverHandle> receive_capture(const FrameTarget& target, const DatagramConfig& layout,
                                                const std::string& path, double speed, bool trust_checksums,
                                                const std::vector<std::string>& from, std::uint32_t senders,
                                                double idle_seconds) {
  const ingest::DatagramReception reception = Senders{from, senders, idle_seconds}.reception(layout, speed == 0);
  const GilRelease released;
  const auto open = [&](Ring& ring, std::string& at, std::string& /*on*/) {
    at = path;
    return ingest::open_capture(ring, path, {.speed = speed, .trust_checksums = trust_checksums});
  };
  return std::make_unique<ReceiverHandle>(target, merged_slots(layout, Layer::ethernet), open, reception);
}

std::unique_ptr<ReceiverHandle> follow_capture(const FrameTarget& target, const std::string& path, double speed,
                                               std::uint16_t port, std::uint32_t connections, std::size_t hold_bytes,
                                               bool trust_checksums) {
  const GilRelease released;
  const auto open = [&](Ring& ring, std::string& at, std::string& /*on*/) {
    at = path;
    return ingest::open_capture(ring, path, {.speed = speed});
  };
  return std::make_unique<ReceiverHandle>(
      target, SlotShape{kMergedBytes, 0}, open,
      ingest::FollowOptions{.port = port, .trust_checksums = trust_checksums, .hold_bytes = hold_bytes},
      ingest::FollowReception{.streams = connections});
}

std::unique_ptr<ReceiverHandle> receive_synthetic(const FrameTarget& target, const DatagramConfig& layout,
                                                  std::uint64_t packets, double packets_per_second, std::uint64_t seed,
                                                  bool payloads_once) {
  const GilRelease released;
  const std::uint32_t payload = layout.header_bytes + layout.payload_bytes;
  const auto open = [&](Ring& ring, std::string& at, std::string& /*on*/) {
    at = "synthetic";
    return ingest::make_synthetic_source(ring, {.payloads = {{.bytes = payload}},
                                                .number_offset = layout.number_offset,
                                                .number_width = layout.number_width,
                                                .packets = packets,
                                                .packets_per_second = packets_per_second,
                                                .port = layout.port,
                                                .checksums = false,
                                                .payloads_once = payloads_once,
                                                .seed = seed});
  };
  constexpr std::size_t kHeaders = 14 + 20 + 8;
  const SlotShape slots{payload + kHeaders, ingest::slot_lead(Layer::ethernet, Transport::udp, layout.header_bytes)};
  return std::make_unique<ReceiverHandle>(
      target, slots, open, ingest::DatagramReception{.config = layout, .wait_for_space = packets_per_second == 0});
}

}  // namespace

void bind_reception(nb::module_& module) {
  module.def(
      "drop_capabilities",
      [] {
        const GilRelease released;
        ingest::drop_capabilities();
      },
      "Gives up CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in every thread of this process, permanently. Call it once all "
      "receivers are open: none needs these rights any more, and those opened later lack them. `headrace ingest` does "
      "it by itself. It notifies threads by a real-time signal, the highest without a handler. Raises SystemError that "
      "names a thread which blocks it.");
  module.def("receive_tcp", &receive_tcp, "target"_a, "address"_a, "port"_a, nb::kw_only(), "connections"_a = 64,
             "mtu"_a = 1500, "offloads"_a = true, "name"_a = "headrace%d", "window_bytes"_a = 16 * kMiB,
             "idle_seconds"_a = 300.0, "interface"_a = "", "control"_a = "host", "close_when_finished"_a = true,
             "trust_checksums"_a = false, "first_byte_seconds"_a = 30.0, "open_at_first_byte"_a = true,
             "backlog"_a = 4096, "memory_bytes"_a = 0);
  module.def("receive_udp", &receive_udp, "target"_a, "layout"_a, "address"_a, nb::kw_only(), "multicast_group"_a = "",
             "interface"_a = "", "kernel_buffer_bytes"_a = 8 * kMiB, "from_senders"_a = std::vector<std::string>{},
             "senders"_a = 64, "idle_seconds"_a = 10.0);
  module.def("receive_packets", &receive_packets, "target"_a, "layout"_a, "interface"_a, nb::kw_only(), "via"_a,
             "address"_a = "", "promiscuous"_a = false, "trust_checksums"_a = false,
             "from_senders"_a = std::vector<std::string>{}, "senders"_a = 64, "idle_seconds"_a = 10.0);
  module.def("receive_capture", &receive_capture, "target"_a, "layout"_a, "path"_a, nb::kw_only(), "speed"_a = 0.0,
             "trust_checksums"_a = false, "from_senders"_a = std::vector<std::string>{}, "senders"_a = 64,
             "idle_seconds"_a = 10.0);
  module.def("follow_capture", &follow_capture, "target"_a, "path"_a, nb::kw_only(), "speed"_a = 0.0, "port"_a = 0,
             "connections"_a = 64, "hold_bytes"_a = 256 * kMiB, "trust_checksums"_a = false);
  module.def("receive_synthetic", &receive_synthetic, "target"_a, "layout"_a, nb::kw_only(), "packets"_a = 0,
             "packets_per_second"_a = 0.0, "seed"_a = 1, "payloads_once"_a = false);
}

}  // namespace headrace::python
