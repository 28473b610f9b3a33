#pragma once

#include <cstdint>

namespace headrace::ingest {

/// What a packet in the ring begins with.
enum class Layer : std::uint8_t {
  ethernet,  ///< An Ethernet header (AF_PACKET, AF_XDP, most captures).
  ip,        ///< An IPv4 or IPv6 header (TUN, raw captures).
  payload    ///< The payload of a datagram (UDP sockets): the kernel removed the headers.
};

/// A received packet in a slot of the ring.
struct Packet {
  std::uint64_t ring_offset = 0;  ///< Where its first byte lies, from the first byte of the ring's memory.
  std::uint64_t received_ns = 0;  ///< When it came, by the monotonic clock or the capture's.
  std::uint32_t length = 0;       ///< Bytes in the ring.
  /// Payload bytes of each segment if the kernel merged several (TSO, GRO); 0: a single packet.
  std::uint16_t segment_bytes = 0;
  bool checksum_verified = false;  ///< By the kernel or the card: it need not be checked again.
  bool truncated = false;          ///< The slot was too short; only `length` bytes are there.
};

}  // namespace headrace::ingest
