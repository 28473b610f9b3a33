#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::ingest {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::uint16_t kEthertypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEthertypeIpv6 = 0x86DD;

/// Writes an Ethernet header with two locally administered addresses.
void write_ethernet(std::byte* to, std::uint16_t ethertype) noexcept;

/// The IPv4 and UDP headers of a datagram.
struct UdpHeaders {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  bool checksum = true;
};

/// Writes the headers at the start of `packet`, whose payload must already be there, from byte 28 on.
void write_udp(std::span<std::byte> packet, const UdpHeaders& headers) noexcept;

}  // namespace headrace::ingest
