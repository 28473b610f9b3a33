#pragma once

// open_capture() makes a source of the packets in a pcap or pcapng file, packed or not, or in a pipe.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 2048, 1024);
//     auto capture = headrace::ingest::open_capture(ring, "traffic.pcap.gz", {.speed = 1});
//     std::vector<headrace::ingest::Packet> burst(64);
//     while (!capture->ended()) {
//       std::size_t count = capture->receive(burst, std::chrono::seconds(1)).or_throw("reading traffic.pcap.gz");
//       ring.release(ring.published());  // once the `count` packets have been used
//     }

#include <memory>
#include <string>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// How a capture is replayed.
struct CaptureOptions {
  /// 0: as fast as slots become free; packets keep the capture's times. 1: with the gaps of the capture, 2: in half the
  /// time, ...; packets are then stamped with the time at which they were due, by the monotonic clock.
  double speed = 0;
  /// Accepts all checksums, and takes a length of 0 in an IP header to be that of the captured packet: for captures
  /// made on the sending machine, before its network card filled them in.
  bool trust_checksums = false;
};

/// The packets of a pcap or pcapng file, or of a pipe ("-" is the standard input), packed by gzip or Zstandard or not:
/// microseconds or nanoseconds, either byte order, several sections and interfaces. Link types: Ethernet, raw IP, Linux
/// cooked (v1, v2), BSD loopback. The first interface determines the layer: packets of other interfaces are converted
/// to it (their link header removed, or an Ethernet header added), and packets other than IP are left out. A packet of
/// which the capture holds only the start is truncated.
///
/// Throws SystemError if there is no such file, UsageError if it is a folder, and DataError "<path>: byte <offset>:
/// ..." if it is no capture or has another link type. Damage further on is an error of receive(), after everything
/// before it; failure() then has the same text.
[[nodiscard]] std::unique_ptr<Source> open_capture(Ring& ring, const std::string& path, CaptureOptions options = {});

}  // namespace headrace::ingest
