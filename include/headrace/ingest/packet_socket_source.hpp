#pragma once

// open_packet_socket() makes a source of the Ethernet frames that come to an interface, by AF_PACKET. It needs
// CAP_NET_RAW.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 65536, 256);
//     auto source = headrace::ingest::open_packet_socket(ring, {.interface = "eth0", .udp_port = 9000});
//     std::vector<headrace::ingest::Packet> burst(64);
//     std::size_t count = source->receive(burst, std::chrono::seconds(1)).or_throw("receiving from eth0");
//     ring.release(ring.published());  // once the `count` packets have been used

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// How a group of packet sockets shares the packets of an interface (packet(7), PACKET_FANOUT).
enum class Fanout : std::uint8_t {
  hash,         ///< By flow: a connection's packets stay together.
  round_robin,  ///< In turn.
  cpu           ///< By the core that took the packet from the card.
};

/// Which packets of an interface are taken, and through which buffers.
struct PacketSocketOptions {
  std::string interface{};  ///< The name of the interface.
  /// Takes only UDP datagrams to this port, over IPv4 or IPv6 without extension headers, and fragments of UDP over IPv4
  /// or of anything over IPv6; 0: all packets.
  std::uint16_t udp_port = 0;
  bool promiscuous = false;              ///< Takes packets to other addresses as well.
  std::optional<std::uint16_t> group{};  ///< Shares the packets with other sockets of this group.
  Fanout fanout = Fanout::hash;          ///< How the group shares them.
  std::size_t block_bytes = 1 << 20;     ///< Bytes of a block of the kernel's ring; a multiple of the page size.
  std::uint32_t block_count = 64;        ///< Blocks of the ring, which is locked memory.
  std::uint32_t block_timeout_ms = 10;   ///< Time after which the kernel hands over a block that is not full.
};

/// Ethernet frames of an interface, by AF_PACKET with TPACKET_V3: the kernel fills blocks of a ring that is mapped
/// here, and a block costs one wake-up however many packets it holds. The kernel's own network stack gets the same
/// packets. For UDP and raw packets. Not for TCP: a block is handed over when it is full or its time is up, and a
/// sender that waits for acknowledgements fills none, so that each round trip takes the block's time.
///
/// Packets that the kernel merged have segment_bytes; a VLAN tag that the card removed stays off. Packets that this
/// machine sends on the interface are not received. send() sends a frame.
///
/// Throws SystemError that names CAP_NET_RAW if the process lacks it, and UsageError for an unknown interface and for
/// options out of range.
[[nodiscard]] std::unique_ptr<Source> open_packet_socket(Ring& ring, const PacketSocketOptions& options);

}  // namespace headrace::ingest
