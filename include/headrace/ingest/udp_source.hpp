#pragma once

// open_udp() makes a source of the datagrams that come to a socket, of a multicast group if need be. It needs no
// rights.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 65536, 256);
//     auto udp = headrace::ingest::open_udp(ring, {.address = "127.0.0.1", .port = 9000});
//     std::printf("listening on port %d\n", udp->port());
//     std::vector<headrace::ingest::Packet> burst(64);
//     std::size_t count = udp->receive(burst, std::chrono::seconds(1)).or_throw("receiving");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// The socket that open_udp() makes.
struct UdpOptions {
  std::string address = "0.0.0.0";  ///< A numeric IPv4 or IPv6 address to bind to.
  std::uint16_t port = 0;           ///< 0: any that is free, see UdpSource::port().
  std::string multicast_group{};    ///< The group to join; empty: none.
  std::string interface{};          ///< The interface to join it on; empty: the system chooses.
  /// The socket's receive buffer. Without CAP_NET_ADMIN the kernel limits it to net.core.rmem_max.
  std::size_t kernel_buffer_bytes = std::size_t{8} << 20;
  /// Lets the kernel merge datagrams of one sender and size into one slot (UDP_GRO), which must hold 65,535 bytes.
  bool merge = true;
};

/// Datagrams of a socket. A slot holds a payload, or several of segment_bytes each if the kernel merged them. Slower
/// than the other sources, because the kernel parses every header and copies, but it needs no rights.
class UdpSource : public Source {
 public:
  /// The port that the socket is bound to.
  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
};

/// Makes the socket and its source. Throws UsageError for an invalid address, group or interface, SystemError if the
/// address is in use or not one of this machine.
[[nodiscard]] std::unique_ptr<UdpSource> open_udp(Ring& ring, const UdpOptions& options);

}  // namespace headrace::ingest
