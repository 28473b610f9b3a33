#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/ingest/sender.hpp"
#include "ingest/stream_bytes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::SendReport;
using ingest::TcpSender;
using ingest::UdpSender;

nb::bytes stream_bytes(std::uint64_t seed, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  ingest::StreamBytes(seed).fill(offset, std::as_writable_bytes(std::span(bytes)));
  return nb::bytes(bytes.data(), bytes.size());
}

void bind_sent_report(nb::module_& module) {
  nb::class_<SendReport>(module, "SendReport", "What has been sent.")
      .def_ro("bytes", &SendReport::bytes, "Bytes of the stream.")
      .def_ro("units", &SendReport::units,
              "Chunks that are sent and, if waited for, acknowledged (TCP); datagrams (UDP).")
      .def_prop_ro(
          "seconds", [](const SendReport& report) { return to_seconds(report.time); },
          "From the first byte to the end; over TCP, to the last acknowledgement.")
      .def_ro("round_trips", &SendReport::round_trips,
              "TCP, if each chunk is waited for: from its first byte to the acknowledgement of its last.")
      .def_ro("retransmitted", &SendReport::retransmitted, "Retransmitted TCP segments.")
      .def_prop_ro(
          "kernel_round_trip", [](const SendReport& report) { return to_seconds(report.kernel_round_trip); },
          "TCP: the kernel's own estimate, in seconds.")
      .def_ro("refused", &SendReport::refused, "UDP: datagrams that the receiver's machine refused by ICMP.")
      .def("__repr__", [](const SendReport& report) {
        return fmt::format("SendReport(bytes={}, units={}, seconds={:.3g})", report.bytes, report.units,
                           to_seconds(report.time));
      });
}

void bind_tcp(nb::module_& module) {
  nb::class_<TcpSender>(module, "TcpSender",
                        "Sends stream_bytes(seed) over a TCP connection of the kernel, in parts and chunks.")
      .def(
          "__init__",
          [](TcpSender* self, const std::string& address, std::uint16_t port, std::uint64_t seed,
             std::uint32_t segment_bytes, std::size_t kernel_buffer_bytes, double connect_timeout) {
            const ingest::TcpSendOptions options{.address = address,
                                                 .port = port,
                                                 .seed = seed,
                                                 .segment_bytes = segment_bytes,
                                                 .kernel_buffer_bytes = kernel_buffer_bytes,
                                                 .connect_timeout = to_duration("connect_timeout", connect_timeout)};
            const GilRelease released;
            new (self) TcpSender(options);
          },
          "address"_a, "port"_a, nb::kw_only(), "seed"_a = 1, "segment_bytes"_a = 0, "kernel_buffer_bytes"_a = 0,
          "connect_timeout"_a = 10.0,
          "Connects to an IPv4 or IPv6 address, given as a number. `segment_bytes`: most payload in a segment; "
          "`kernel_buffer_bytes`: buffer for unacknowledged data; 0 leaves both to the kernel.")
      .def("begin", &TcpSender::begin, "bytes"_a, "chunk_bytes"_a, "wait"_a = true,
           "Begins the next part of the stream. With `wait`, a chunk is sent once the previous one has been "
           "acknowledged.")
      .def(
          "run",
          [](TcpSender& sender, double seconds) {
            const Duration time = to_duration("seconds", seconds);
            const GilRelease released;
            return sender.run(time);
          },
          "seconds"_a, "Sends for about this long; True once the part is sent and acknowledged.")
      .def("report", &TcpSender::report, "The report of the current part, or the last.")
      .def("finish", &TcpSender::finish, "Ends the stream.");
}

void bind_udp(nb::module_& module) {
  nb::class_<UdpSender>(module, "UdpSender",
                        "Sends numbered datagrams through the kernel, with stream_bytes(seed) after their numbers.")
      .def(
          "__init__",
          [](UdpSender* self, const std::string& address, std::uint16_t port, std::uint64_t packets, std::uint64_t seed,
             std::uint32_t payload_bytes, double packets_per_second, std::optional<std::uint32_t> number_offset,
             std::uint32_t number_width, std::uint64_t first_number) {
            new (self) UdpSender({.address = address,
                                  .port = port,
                                  .seed = seed,
                                  .packets = packets,
                                  .payload_bytes = payload_bytes,
                                  .packets_per_second = packets_per_second,
                                  .number_offset = number_offset,
                                  .number_width = number_width,
                                  .first_number = first_number});
          },
          "address"_a, "port"_a, "packets"_a, nb::kw_only(), "seed"_a = 1, "payload_bytes"_a = 1464,
          "packets_per_second"_a = 0.0, "number_offset"_a.none() = 0, "number_width"_a = 8, "first_number"_a = 0,
          "`payload_bytes`: bytes of the stream in each datagram. `packets_per_second` 0: as fast as the kernel "
          "accepts them. The number, big-endian and `number_width` 4 or 8 bytes wide, is at `number_offset` of the "
          "datagram, and the payload follows it; `number_offset` None: datagrams have no number.")
      .def(
          "run",
          [](UdpSender& sender, double seconds) {
            const Duration time = to_duration("seconds", seconds);
            const GilRelease released;
            return sender.run(time);
          },
          "seconds"_a, "Sends for about this long; True once all datagrams are sent.")
      .def("report", &UdpSender::report, "What has been sent so far.");
}

}  // namespace

void bind_ingest(nb::module_& module) {
  module.def("stream_bytes", &stream_bytes, "seed"_a, "offset"_a, "count"_a,
             "A part of the endless stream that follows from a seed, which senders send.");
  bind_sent_report(module);
  bind_tcp(module);
  bind_udp(module);
}

}  // namespace headrace::python
