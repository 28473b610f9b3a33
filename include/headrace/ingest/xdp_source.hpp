#pragma once

// open_xdp() makes a source of the Ethernet frames of an interface's receive queues, past the network stack, by AF_XDP.
// It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 4096, 1024);
//     auto source = headrace::ingest::open_xdp(ring, {.interface = "eth0", .udp_port = 9000});
//     std::vector<headrace::ingest::Packet> burst(64);
//     std::size_t count = source->receive(burst, std::chrono::seconds(1)).or_throw("receiving from eth0");
//     ring.release(ring.published());  // once the `count` packets have been used

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// Where in the kernel packets are taken.
enum class XdpHook : std::uint8_t {
  automatic,  ///< In the driver where it can, else generic.
  driver,     ///< In the driver, before the kernel allocates its own packet.
  generic     ///< After that: works with any driver, but is slower.
};

/// Which packets of an interface are taken, and through which queues.
struct XdpOptions {
  std::string interface{};        ///< The name of the interface.
  std::uint32_t first_queue = 0;  ///< The first receive queue to take packets from.
  std::uint32_t queue_count = 0;  ///< 0: all from the first on. Packets of other queues stay with the kernel.
  /// Takes only IPv4 packets to this address ("10.0.0.2"); empty: any. With neither address nor port it takes all
  /// packets, ARP and remote logins included. Packets that are not taken stay with the kernel.
  std::string address{};
  std::uint16_t udp_port = 0;         ///< Takes only UDP over IPv4 to this port; 0: any.
  XdpHook hook = XdpHook::automatic;  ///< Where in the kernel packets are taken.
  std::uint32_t frames = 4096;        ///< Frames of 4 KiB for each queue: a power of two. Locked memory.
  /// Marks packets as needing no check of their checksums. For veth, whose sender leaves checksums to hardware that
  /// does not exist: AF_XDP cannot report that, and the checksum of every such packet is wrong.
  bool trust_checksums = false;
};

/// Ethernet frames of an interface's receive queues, by AF_XDP in copy mode, which every driver has: a program in the
/// kernel steers packets to a socket for each queue, past the network stack. Larger packets than 4 KiB come in parts
/// that are put together (Linux 6.6). For UDP, raw packets, and TCP at an address that the kernel does not have. The
/// program goes with the source, and with the process however it ends. send() sends a frame of up to 4 KiB on the first
/// queue.
///
/// Throws SystemError that names CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF if the process lacks them, or if the kernel or
/// the driver does not support it or another program is attached already; UsageError for an invalid interface, queues
/// or filters, and (Errc::not_supported) in a build without libxdp.
[[nodiscard]] std::unique_ptr<Source> open_xdp(Ring& ring, const XdpOptions& options);

}  // namespace headrace::ingest
