#pragma once

// open_tun() makes a network device, and a source of the IP packets that this machine sends to it. TCP is received this
// way. It needs CAP_NET_ADMIN.
//
//     headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 65536, 256);
//     auto tun = headrace::ingest::open_tun(ring, {.address = "10.0.0.2/24"});
//     std::printf("packets to 10.0.0.2 come through %s\n", tun->name().c_str());
//     std::vector<headrace::ingest::Packet> burst(64);
//     std::size_t count = tun->receive(burst, std::chrono::seconds(1)).or_throw("receiving");

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/ingest/detail/capabilities.hpp"  // drop_capabilities(), once the device is open
#include "headrace/ingest/detail/ip_address.hpp"
#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// The network device that open_tun() makes.
struct TunOptions {
  /// Headrace's address: "10.0.0.2/24" or "fd00::2/64"; without a prefix, the smallest subnet that it can be a host of
  /// is used. The kernel gets another address of the subnet. Empty: a subnet of 198.18.0.0/15 (RFC 2544) without a
  /// route; "::": one of 2001:2::/48 (RFC 5180).
  std::string address{};
  std::string name = "headrace%d";  ///< The name of the device; %d: the first number that is free.
  std::uint32_t mtu = 1500;         ///< 68 (IPv6: 1280) to 65535.
  /// Lets the kernel hand over super-packets of up to 64 KiB without checksums (TSO, USO), which consist of segments of
  /// segment_bytes. Slots must hold 65,535 bytes.
  bool offloads = true;
};

/// IP packets of a network device whose other end is this machine's network stack: every program on the machine, and
/// every host routed through it, can send to Headrace's address, and Headrace answers by send(). The source to use for
/// TCP. The device is removed with the source, or when the process ends in any way.
class TunSource : public Source {
 public:
  /// The name of the network device.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Headrace's address, to which the kernel sends.
  [[nodiscard]] virtual const IpAddress& address() const noexcept = 0;
  /// The kernel's address, from which it sends.
  [[nodiscard]] virtual const IpAddress& peer_address() const noexcept = 0;
  /// The MTU of the network device.
  [[nodiscard]] virtual std::uint32_t mtu() const noexcept = 0;
};

/// Makes the network device and its source. Throws SystemError that names CAP_NET_ADMIN if the process lacks it, and
/// UsageError for an invalid name, address or MTU, for a subnet that overlaps one with a route, and for slots smaller
/// than a packet.
[[nodiscard]] std::unique_ptr<TunSource> open_tun(Ring& ring, const TunOptions& options = {});

}  // namespace headrace::ingest
