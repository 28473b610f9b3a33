#include "ingest/sources/headers.hpp"

#include <bit>
#include <cstring>

namespace headrace::ingest {

namespace {

constexpr std::uint8_t kUdpProtocol = 17;

[[nodiscard]] std::uint16_t fold(std::uint64_t sum) noexcept {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint64_t sum) noexcept {
  // 32-bit words in the machine's own order: the sum of swapped words is the swapped sum (RFC 1071, 2B).
  std::uint64_t words = 0;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    words += word;
  }
  std::uint32_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  std::uint16_t folded = fold(words + rest);
  if constexpr (std::endian::native == std::endian::little) {
    folded = static_cast<std::uint16_t>(folded << 8 | folded >> 8);
  }
  return static_cast<std::uint16_t>(~fold(sum + folded));
}

void write_ethernet(std::byte* to, std::uint16_t ethertype) noexcept {
  constexpr std::byte kLocal{0x02};  // unicast, locally administered
  std::memset(to, 0, kEthernetBytes);
  to[0] = kLocal;
  to[5] = std::byte{2};
  to[6] = kLocal;
  to[11] = std::byte{1};
  store16(to + 12, ethertype);
}

void write_udp(std::span<std::byte> packet, const UdpHeaders& headers) noexcept {
  std::byte* const ip = packet.data();
  std::memset(ip, 0, kIpv4Bytes + kUdpBytes);
  ip[0] = std::byte{0x45};
  store16(ip + 2, static_cast<std::uint16_t>(packet.size()));
  ip[6] = std::byte{0x40};  // not to be fragmented
  ip[8] = std::byte{64};
  ip[9] = std::byte{kUdpProtocol};
  store32(ip + 12, headers.source);
  store32(ip + 16, headers.destination);
  store16(ip + 10, internet_checksum(packet.first(kIpv4Bytes)));

  std::byte* const udp = ip + kIpv4Bytes;
  const auto udp_bytes = static_cast<std::uint16_t>(packet.size() - kIpv4Bytes);
  store16(udp, headers.source_port);
  store16(udp + 2, headers.destination_port);
  store16(udp + 4, udp_bytes);
  if (!headers.checksum) return;
  const std::uint64_t pseudo = (headers.source >> 16) + (headers.source & 0xFFFF) + (headers.destination >> 16) +
                               (headers.destination & 0xFFFF) + std::uint64_t{kUdpProtocol} + udp_bytes;
  const std::uint16_t checksum = internet_checksum(packet.subspan(kIpv4Bytes), pseudo);
  store16(udp + 6, checksum == 0 ? 0xFFFF : checksum);  // 0 would say that there is none (RFC 768)
}

}  // namespace headrace::ingest
