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

struct UdpOptions {
  std::string address = "0.0.0.0";  ///< To bind to: IPv4 or IPv6, as a number.
  std::uint16_t port = 0;           ///< 0: any that is free; port() says which.
  std::string multicast_group{};    ///< Empty: none.
  std::string interface{};          ///< To join the group on; empty: the system chooses.
  /// Asked of the kernel for packets that wait; it gives no more than net.core.rmem_max to who lacks CAP_NET_ADMIN.
  std::size_t kernel_buffer_bytes = std::size_t{8} << 20;
  /// Lets the kernel merge datagrams of one sender and size into one slot (UDP_GRO), which must hold 65,535 bytes.
  bool merge = true;
};

/// Datagrams of a socket. A slot holds a payload, or several of segment_bytes each where the kernel merged them. The
/// slower way from a fast sender, since the kernel has looked at every header and copies, but one that needs no rights.
class UdpSource : public Source {
 public:
  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
};

/// Throws UsageError for an address, group or interface that is none, SystemError when the address is in use or not
/// this machine's.
[[nodiscard]] std::unique_ptr<UdpSource> open_udp(Ring& ring, const UdpOptions& options);

}  // namespace headrace::ingest
