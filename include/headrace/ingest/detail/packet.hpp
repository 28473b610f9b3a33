#pragma once

#include <cstdint>

namespace headrace::ingest {

/// What the first byte of a packet in the ring belongs to.
enum class Layer : std::uint8_t {
  ethernet,  ///< An Ethernet header (AF_PACKET, AF_XDP, most captures).
  ip,        ///< An IPv4 or IPv6 header (TUN, raw captures).
  payload    ///< The payload of a datagram (UDP sockets): headers were removed by the kernel.
};

/// A received packet in a slot of the ring.
struct Packet {
  std::uint64_t ring_offset = 0;  ///< Where its first byte lies, from the first byte of the ring's memory.
  std::uint64_t received_ns = 0;  ///< When it came, by the monotonic clock or the capture's.
  std::uint32_t length = 0;       ///< Bytes in the ring.
  /// Payload bytes of each segment where the kernel merged several (TSO, GRO); 0: it is one.
  std::uint16_t segment_bytes = 0;
  bool checksum_verified = false;  ///< By the kernel or the card: need not be looked at again.
  bool truncated = false;          ///< The slot was too short; only `length` bytes are there.
};

}  // namespace headrace::ingest
