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

inline void store16(std::byte* to, std::uint16_t value) noexcept {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value & 0xFF);
}

inline void store32(std::byte* to, std::uint32_t value) noexcept {
  store16(to, static_cast<std::uint16_t>(value >> 16));
  store16(to + 2, static_cast<std::uint16_t>(value & 0xFFFF));
}

[[nodiscard]] inline std::uint16_t load16(const std::byte* from) noexcept {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(from[0]) << 8 | std::to_integer<unsigned>(from[1]));
}

/// An Ethernet header between two local addresses of the same end.
void write_ethernet(std::byte* to, std::uint16_t ethertype) noexcept;

/// IPv4 and UDP headers of a datagram whose payload follows them.
struct UdpHeaders {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  bool checksum = true;
};

/// Writes them at the start of `packet`, whose payload, from byte 28 on, must be there already.
void write_udp(std::span<std::byte> packet, const UdpHeaders& headers) noexcept;

/// The Internet checksum (RFC 1071) as it is stored in a header, of bytes whose own checksum field is 0.
/// @param sum  of what belongs to it beside the bytes (a pseudo header), as 16-bit words.
[[nodiscard]] std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint64_t sum = 0) noexcept;

}  // namespace headrace::ingest
