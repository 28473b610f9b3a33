#include "ingest/sources/headers.hpp"

#include <cstring>

#include "headrace/ingest/detail/wire.hpp"
#include "ingest/checksum.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint8_t kUdpProtocol = 17;

}  // namespace

void write_ethernet(std::byte* to, std::uint16_t ethertype) noexcept {
  constexpr std::byte kLocal{0x02};  // unicast, locally administered
  std::memset(to, 0, kEthernetBytes);
  to[0] = kLocal;
  to[5] = std::byte{2};
  to[6] = kLocal;
  to[11] = std::byte{1};
  store_be16(to + 12, ethertype);
}

void write_udp(std::span<std::byte> packet, const UdpHeaders& headers) noexcept {
  std::byte* const ip = packet.data();
  std::memset(ip, 0, kIpv4Bytes + kUdpBytes);
  ip[0] = std::byte{0x45};
  store_be16(ip + 2, static_cast<std::uint16_t>(packet.size()));
  ip[6] = std::byte{0x40};  // don't fragment
  ip[8] = std::byte{64};
  ip[9] = std::byte{kUdpProtocol};
  store_be32(ip + 12, headers.source);
  store_be32(ip + 16, headers.destination);
  store_be16(ip + 10, checksum_of(checksum_add(0, ip, kIpv4Bytes)));

  std::byte* const udp = ip + kIpv4Bytes;
  const auto udp_bytes = static_cast<std::uint16_t>(packet.size() - kIpv4Bytes);
  store_be16(udp, headers.source_port);
  store_be16(udp + 2, headers.destination_port);
  store_be16(udp + 4, udp_bytes);
  if (!headers.checksum) return;
  ChecksumSum sum = checksum_add(0, ip + 12, 8);  // the pseudo header: both addresses, protocol, length
  sum = checksum_add(checksum_add(sum, kUdpProtocol), udp_bytes);
  const std::uint16_t checksum = checksum_of(checksum_add(sum, udp, udp_bytes));
  store_be16(udp + 6, checksum == 0 ? 0xFFFF : checksum);  // 0 would mean no checksum (RFC 768)
}

}  // namespace headrace::ingest
