#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "ingest/checksum.hpp"

namespace headrace::ingest {

/// A packet to send, of the layer that the source delivers.
struct Reply {
  static constexpr std::uint32_t kBytesMax = kLinkBytesMax + 40 + 60;  ///< Ethernet, IPv6 and TCP headers.
  std::uint16_t length = 0;
  std::byte bytes[kBytesMax];
};
static_assert(sizeof(Reply) == 128);

/// The bytes before the IP header of replies: the Ethernet header of a received packet with its addresses swapped.
struct LinkHeader {
  std::byte bytes[kLinkBytesMax] = {};
  std::uint8_t length = 0;

  /// Takes it from the packet that begins at `packet`. Requires: parse_headers() gave `link_length`.
  HEADRACE_HD void answer_to(const std::byte* packet, std::uint8_t link_length) {
    constexpr std::uint32_t kAddress = 6;
    length = link_length;
    if (length == 0) return;
    copy_octets(bytes, packet + kAddress, kAddress);
    copy_octets(bytes + kAddress, packet, kAddress);
    copy_octets(bytes + 2 * kAddress, packet + 2 * kAddress, length - 2 * kAddress);
  }
};

/// A TCP segment to write. With its headers and options it must fit in a Reply.
struct TcpReply {
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint8_t flags = 0;
  std::uint16_t window = 0;
  std::uint8_t options_length = 0;  ///< A multiple of 4.
  std::byte options[40] = {};
  const std::byte* payload = nullptr;
  std::uint32_t payload_length = 0;
};

namespace detail {

/// Writes the IP header for `length` bytes of TCP, and returns its length.
HEADRACE_HD inline std::uint32_t write_ip(std::byte* to, const Flow& flow, std::uint32_t length) {
  constexpr std::uint32_t kTcp = 6;
  constexpr std::uint32_t kHops = 64;
  if (flow.version == 4) {
    store_be16(to, 0x4500);
    store_be16(to + 2, 20 + length);
    store_be16(to + 4, 0);
    store_be16(to + 6, 0x4000);  // don't fragment, so the identification need not be unique (RFC 6864)
    store_be16(to + 8, kHops << 8 | kTcp);
    store_be16(to + 10, 0);
    memcpy(to + 12, flow.local, 4);
    memcpy(to + 16, flow.remote, 4);
    store_be16(to + 10, checksum_of(checksum_add(0, to, 20)));
    return 20;
  }
  store_be32(to, 0x60000000);
  store_be16(to + 4, length);
  store_be16(to + 6, kTcp << 8 | kHops);
  memcpy(to + 8, flow.local, 16);
  memcpy(to + 24, flow.remote, 16);
  return 40;
}

}  // namespace detail

/// Writes `segment` to the remote end of `flow`, with its checksums.
[[gnu::noinline]] HEADRACE_HD inline void write_reply(Reply& reply, const LinkHeader& link, const Flow& flow,
                                                      const TcpReply& segment) {
  constexpr std::uint32_t kHeader = 20;
  const std::uint32_t header = kHeader + segment.options_length;
  const std::uint32_t length = header + segment.payload_length;
  copy_octets(reply.bytes, link.bytes, link.length);
  std::byte* const ip = reply.bytes + link.length;
  const std::uint32_t ip_length = detail::write_ip(ip, flow, length);
  std::byte* const tcp = ip + ip_length;
  store_be16(tcp, flow.local_port);
  store_be16(tcp + 2, flow.remote_port);
  store_be32(tcp + 4, segment.sequence);
  store_be32(tcp + 8, segment.acknowledgement);
  store_8(tcp + 12, header / 4 << 4);
  store_8(tcp + 13, segment.flags);
  store_be16(tcp + 14, segment.window);
  store_be32(tcp + 16, 0);  // checksum, urgent pointer
  copy_octets(tcp + kHeader, segment.options, segment.options_length);
  copy_octets(tcp + header, segment.payload, segment.payload_length);
  const std::uint32_t source = ip_length == 20 ? 12U : 8U;  // the pseudo header: both addresses, protocol, length
  ChecksumSum sum = checksum_add(0, ip + source, ip_length - source);
  sum = checksum_add(sum, 6U);
  sum = checksum_add(sum, length);
  store_be16(tcp + 16, checksum_of(checksum_add(sum, tcp, length)));
  reply.length = static_cast<std::uint16_t>(link.length + ip_length + length);
}

}  // namespace headrace::ingest
