#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"
#include "ingest/datagram_state.hpp"
#include "ingest/parse.hpp"

namespace headrace::ingest {

/// The datagrams of one packet: one, or several of equal size if the kernel merged them. The last may be shorter.
struct DatagramRun {
  std::uint64_t at = 0;      ///< Ring offset of the next datagram's first byte.
  std::uint32_t length = 0;  ///< Bytes of all datagrams that are left.
  std::uint32_t each = 0;    ///< Bytes of one datagram.
  Flow flow;                 ///< The sender; Flow::version is 0 if it is not known.

  /// Bytes of the next datagram.
  [[nodiscard]] HEADRACE_HD std::uint32_t next() const { return length < each ? length : each; }
  HEADRACE_HD void skip(std::uint32_t bytes) {
    at += bytes;
    length -= bytes;
  }
};

/// Finds the datagrams of a packet, or returns why it has none for this configuration. Packets without headers have no
/// flow; raw packets have one only if they happen to be UDP over IP.
[[nodiscard]] HEADRACE_HD inline ParseResult find_datagrams(const std::byte* ring, const Packet& packet, Layer layer,
                                                            const DatagramConfig& config, DatagramRun& run) {
  if (packet.truncated) return ParseResult::snapped;
  const auto cut = [&packet](std::uint32_t length) {
    return packet.segment_bytes == 0 ? length : std::uint32_t{packet.segment_bytes};
  };
  Headers headers;
  if (config.raw) {
    if (packet.length < config.raw_offset) return ParseResult::truncated;
    const std::uint32_t length = packet.length - config.raw_offset;
    run = {packet.ring_offset + config.raw_offset, length, cut(length), {}};
    if (layer == Layer::payload) return ParseResult::ok;
    Packet trusted = packet;
    trusted.checksum_verified = true;
    const bool known = parse_headers(ring + packet.ring_offset, trusted, layer, headers) == ParseResult::ok;
    if (known && headers.transport == Transport::udp) run.flow = headers.flow;
    return ParseResult::ok;
  }
  if (layer == Layer::payload) {
    run = {packet.ring_offset, packet.length, cut(packet.length), {}};
    return ParseResult::ok;
  }
  const ParseResult parsed = parse_headers(ring + packet.ring_offset, packet, layer, headers);
  if (parsed != ParseResult::ok) return parsed;
  if (headers.transport != Transport::udp) return ParseResult::not_udp;
  if (config.port != 0 && config.port != headers.flow.local_port) return ParseResult::other_port;
  run = {packet.ring_offset + headers.payload_offset, headers.payload_length, cut(headers.payload_length),
         headers.flow};
  return ParseResult::ok;
}

}  // namespace headrace::ingest
