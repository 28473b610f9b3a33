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
  std::uint32_t bytes = 1460;  ///< The size of a payload.
  double share = 1;            ///< Relative to those of other sizes.
};

/// Which packets a synthetic source makes. Payloads, without the bytes up to and including their sequence numbers, are
/// StreamBytes(seed) in order; the seed also determines the order of sizes.
struct SyntheticTraffic {
  /// payload: the payload alone. ip and ethernet: UDP over IPv4, from 198.18.0.1 to 198.18.0.2 (RFC 2544), in
  /// unfragmented packets of up to 65,535 bytes.
  Layer layer = Layer::ethernet;
  std::vector<PayloadShare> payloads{PayloadShare{}};  ///< The sizes of payloads.
  /// Where in the payload the packet's number lies, big-endian; bytes before it are 0, the stream's come after it.
  /// Without one, a payload is bytes of the stream only.
  std::optional<std::uint32_t> number_offset = 0;
  std::uint32_t number_width = 8;  ///< Bytes of the number: 4 or 8.
  std::uint64_t first_number = 0;  ///< The number of the first packet.
  std::uint64_t packets = 0;       ///< How many packets; 0: no end.
  double packets_per_second = 0;   ///< 0: as fast as slots become free.
  std::uint16_t port = 9000;       ///< The destination port.
  /// Whether UDP checksums are computed. Otherwise they are 0 (none), and packets are marked as needing no check.
  bool checksums = true;
  /// Writes payloads only when a slot is first used, and afterwards only headers and numbers: payloads are then not the
  /// stream. For measuring receivers. Needs one size and no checksums.
  bool payloads_once = false;
  std::uint64_t seed = 1;  ///< Selects the bytes and the order of sizes.
};

/// Makes a source of packets that are written in memory, the same for the same traffic. Each is stamped with the time
/// at which it was due by the rate, however late it is received. Throws UsageError for traffic out of range, or with
/// packets larger than a slot.
[[nodiscard]] std::unique_ptr<Source> make_synthetic_source(Ring& ring, SyntheticTraffic traffic);

}  // namespace headrace::ingest
