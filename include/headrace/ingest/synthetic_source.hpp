#pragma once

// make_synthetic_source() makes a source of packets that are written in memory, the same each time: receivers are
// tested and measured with it.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 2048, 1024);
//     headrace::ingest::SyntheticTraffic traffic;
//     traffic.payloads = {{.bytes = 1024, .share = 0.9}, {.bytes = 64, .share = 0.1}};
//     traffic.packets = 10'000;
//     auto source = headrace::ingest::make_synthetic_source(ring, traffic);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// Payloads of one size, and how often they come beside those of other sizes.
struct PayloadShare {
  std::uint32_t bytes = 1460;
  double share = 1;
};

/// Which packets a synthetic source makes. Payloads, in the order of packets and without what comes up to their
/// sequence numbers, are the bytes of StreamBytes(seed); which size comes next follows from the seed as well.
struct SyntheticTraffic {
  /// payload: nothing else. ip and ethernet: UDP over IPv4, from 198.18.0.1 to 198.18.0.2 (RFC 2544), one packet of any
  /// length up to 65,535 bytes.
  Layer layer = Layer::ethernet;
  std::vector<PayloadShare> payloads{PayloadShare{}};
  /// Where in the payload the packet's number lies, big-endian; bytes before it are 0, the stream's come after it.
  /// Without one, a payload is bytes of the stream only.
  std::optional<std::uint32_t> number_offset = 0;
  std::uint32_t number_width = 8;  ///< 4 or 8.
  std::uint64_t first_number = 0;
  std::uint64_t packets = 0;      ///< 0: no end.
  double packets_per_second = 0;  ///< 0: as fast as slots become free.
  std::uint16_t port = 9000;      ///< Sent to.
  /// Whether UDP checksums are made. Without, they are 0 (none) and the packet says that it needs no check.
  bool checksums = true;
  /// Payloads are written when a slot is first used and left as they are afterwards, but for the number: a packet costs
  /// the writing of its headers, and is not the stream. For measuring what takes packets. One size, no checksums.
  bool payloads_once = false;
  std::uint64_t seed = 1;
};

/// Packets made in memory, the same for the same traffic. Each is stamped with the time at which its rate has it come,
/// however late it is taken. Throws UsageError for traffic that cannot be, or whose packets are larger than a slot.
[[nodiscard]] std::unique_ptr<Source> make_synthetic_source(Ring& ring, SyntheticTraffic traffic);

}  // namespace headrace::ingest
