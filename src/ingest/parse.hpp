#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "ingest/checksum.hpp"

/// Reads headers layer by layer; each step knows how many bytes are left.
namespace headrace::ingest {

namespace detail {

inline constexpr std::uint32_t kProtocolTcp = 6;
inline constexpr std::uint32_t kProtocolUdp = 17;
inline constexpr std::uint32_t kTypeIpv4 = 0x0800;
inline constexpr std::uint32_t kTypeIpv6 = 0x86DD;
inline constexpr std::uint32_t kTypeArp = 0x0806;
inline constexpr std::uint32_t kExtensionsMax = 8;

/// The part of a packet that is left to read.
struct Rest {
  const std::byte* bytes;  ///< The packet's first byte.
  std::uint32_t at;
  std::uint32_t end;
  bool merged;
  bool verify;
  [[nodiscard]] HEADRACE_HD std::uint32_t length() const { return end - at; }
  [[nodiscard]] HEADRACE_HD const std::byte* next() const { return bytes + at; }
};

/// Tags of IEEE 802.1Q and 802.1ad, and the service tag that switches used before 802.1ad.
[[nodiscard]] HEADRACE_HD inline bool is_vlan_tag(std::uint32_t type) {
  return type == 0x8100 || type == 0x88A8 || type == 0x9100;
}

/// The reason why a packet of this ethertype is not read; `ok` if it is.
[[nodiscard]] HEADRACE_HD inline ParseResult result_of_type(std::uint32_t type) {
  if (type == kTypeIpv4 || type == kTypeIpv6) return ParseResult::ok;
  if (type == kTypeArp) return ParseResult::arp;
  return is_vlan_tag(type) ? ParseResult::vlan_depth : ParseResult::not_ip;
}

[[nodiscard]] HEADRACE_HD inline ParseResult parse_ethernet(Rest& rest, Headers& headers) {
  constexpr std::uint32_t kAddresses = 12;
  if (rest.length() < kAddresses + 2) return ParseResult::truncated;
  std::uint32_t type = load_be16(rest.next() + kAddresses);
  rest.at += kAddresses + 2;
  for (std::uint32_t tag = 0; tag < kVlanTagsMax && is_vlan_tag(type); ++tag) {
    if (rest.length() < 4) return ParseResult::truncated;
    type = load_be16(rest.next() + 2);
    rest.at += 4;
  }
  headers.link_length = static_cast<std::uint8_t>(rest.at);
  return result_of_type(type);
}

/// Ends the rest where the IP header says that the packet ends, because Ethernet pads short packets. A merged packet
/// may be longer than the length field allows, and then has 0 there. So does a packet that its sender captured before
/// its card segmented it; its checksums cannot be verified either.
[[nodiscard]] HEADRACE_HD inline ParseResult end_at(Rest& rest, std::uint32_t length, bool unsaid,
                                                    std::uint32_t least) {
  if (unsaid && (rest.merged || !rest.verify)) return ParseResult::ok;
  if (length < least) return ParseResult::malformed;
  if (length > rest.length()) return ParseResult::truncated;
  rest.end = rest.at + length;
  return ParseResult::ok;
}

[[nodiscard]] HEADRACE_HD inline ParseResult parse_ipv4(Rest& rest, Headers& headers, std::uint32_t& protocol) {
  if (rest.length() < 20) return ParseResult::truncated;
  const std::byte* const ip = rest.next();
  const std::uint32_t header = (load_8(ip) & 0xFU) * 4;
  if (header < 20) return ParseResult::malformed;
  if (header > rest.length()) return ParseResult::truncated;
  const std::uint32_t total = load_be16(ip + 2);
  const ParseResult ended = end_at(rest, total, total == 0, header);
  if (ended != ParseResult::ok) return ended;
  if (rest.verify && checksum_of(checksum_add(0, ip, header)) != 0) return ParseResult::ip_checksum;
  if ((load_be16(ip + 6) & 0x3FFF) != 0) return ParseResult::fragment;  // more to come, or not the first
  protocol = load_8(ip + 9);
  headers.flow.version = 4;
  memcpy(headers.flow.remote, ip + 12, 4);
  memcpy(headers.flow.local, ip + 16, 4);
  rest.at += header;
  return ParseResult::ok;
}

/// Skips hop-by-hop and destination options (RFC 8200 4.3, 4.6), a routing header that is used up (4.4: no segments
/// left, so that the pseudo header holds the final address), and the fragment header of a whole packet (4.5, RFC 6946).
[[nodiscard]] HEADRACE_HD inline ParseResult skip_extensions(Rest& rest, std::uint32_t& protocol) {
  constexpr std::uint32_t kHops = 0;
  constexpr std::uint32_t kRouting = 43;
  constexpr std::uint32_t kFragment = 44;
  constexpr std::uint32_t kDestination = 60;
  constexpr std::uint32_t kOthers[] = {50, 51, 135, 139, 140};  // ESP, AH, mobility, HIP, shim6
  constexpr std::uint32_t kPartMask = 0xFFF9;                   // the fragment's offset, and more to come
  for (std::uint32_t i = 0; i < kExtensionsMax; ++i) {
    for (const std::uint32_t other : kOthers) {
      if (protocol == other) return ParseResult::extension;
    }
    const bool known = protocol == kHops || protocol == kDestination || protocol == kRouting || protocol == kFragment;
    if (!known) return ParseResult::ok;
    if (rest.length() < 8) return ParseResult::truncated;
    const std::byte* const header = rest.next();
    if (protocol == kFragment && (load_be16(header + 2) & kPartMask) != 0) return ParseResult::fragment;
    const std::uint32_t length = protocol == kFragment ? 8 : (load_8(header + 1) + 1U) * 8;
    if (length > rest.length()) return ParseResult::truncated;
    if (protocol == kRouting && load_8(header + 3) != 0) return ParseResult::routing;
    protocol = load_8(header);
    rest.at += length;
  }
  return ParseResult::extension;
}

[[nodiscard]] HEADRACE_HD inline ParseResult parse_ipv6(Rest& rest, Headers& headers, std::uint32_t& protocol) {
  if (rest.length() < 40) return ParseResult::truncated;
  const std::byte* const ip = rest.next();
  const std::uint32_t payload = load_be16(ip + 4);
  protocol = load_8(ip + 6);
  headers.flow.version = 6;
  memcpy(headers.flow.remote, ip + 8, 16);
  memcpy(headers.flow.local, ip + 24, 16);
  rest.at += 40;
  const ParseResult ended = end_at(rest, payload, payload == 0, 0);
  return ended == ParseResult::ok ? skip_extensions(rest, protocol) : ended;
}

/// The sum of the pseudo header (RFC 9293 3.1, RFC 8200 8.1).
[[nodiscard]] HEADRACE_HD inline ChecksumSum pseudo_sum(const Flow& flow, std::uint32_t protocol,
                                                        std::uint32_t length) {
  ChecksumSum sum = 0;
  for (int i = 0; i < 4; ++i) sum += ChecksumSum{flow.remote[i]} + flow.local[i];
  sum = checksum_add(sum, protocol);
  sum = checksum_add(sum, length >> 16);
  return checksum_add(sum, length & 0xFFFF);
}

/// Stops at the first malformed option; the segment is valid all the same.
HEADRACE_HD inline void parse_tcp_options(const std::byte* bytes, std::uint32_t length, TcpOptions& options) {
  for (std::uint32_t at = 0; at < length;) {
    const std::uint32_t kind = load_8(bytes + at);
    if (kind == 0) return;
    if (kind == 1) {
      ++at;
      continue;
    }
    if (at + 2 > length) return;
    const std::uint32_t size = load_8(bytes + at + 1);
    if (size < 2 || at + size > length) return;
    const std::byte* const value = bytes + at + 2;
    if (kind == 2 && size == 4) options.mss = load_be16(value);
    if (kind == 3 && size == 3) {
      options.has_window_scale = true;
      options.window_scale = load_8(value) > 14 ? 14 : load_8(value);  // RFC 7323 2.3
    }
    if (kind == 4 && size == 2) options.sack_permitted = true;
    if ((kind == 19 && size == 18) || (kind == 29 && size >= 4)) options.has_signature = true;
    if (kind == 8 && size == 10) {
      options.has_timestamps = true;
      options.timestamp = load_be32(value);
      options.timestamp_echo = load_be32(value + 4);
    }
    at += size;
  }
}

[[nodiscard]] HEADRACE_HD inline ParseResult parse_tcp(const Rest& rest, Headers& headers) {
  if (rest.length() < 20) return ParseResult::truncated;
  const std::byte* const tcp = rest.next();
  const std::uint32_t header = (load_8(tcp + 12) >> 4) * 4U;
  if (header < 20) return ParseResult::malformed;
  if (header > rest.length()) return ParseResult::truncated;
  if (rest.verify) {
    const ChecksumSum sum = pseudo_sum(headers.flow, kProtocolTcp, rest.length());
    if (checksum_of(checksum_add(sum, tcp, rest.length())) != 0) return ParseResult::tcp_checksum;
  }
  headers.transport = Transport::tcp;
  headers.flow.remote_port = load_be16(tcp);
  headers.flow.local_port = load_be16(tcp + 2);
  headers.sequence = load_be32(tcp + 4);
  headers.acknowledgement = load_be32(tcp + 8);
  headers.flags = load_8(tcp + 13);
  headers.window = load_be16(tcp + 14);
  headers.payload_offset = rest.at + header;
  headers.payload_length = rest.length() - header;
  parse_tcp_options(tcp + 20, header - 20, headers.options);
  return ParseResult::ok;
}

[[nodiscard]] HEADRACE_HD inline ParseResult parse_udp(Rest rest, Headers& headers) {
  if (rest.length() < 8) return ParseResult::truncated;
  const std::byte* const udp = rest.next();
  const std::uint32_t length = load_be16(udp + 4);
  const ParseResult ended = end_at(rest, length, length == 0, 8);
  if (ended != ParseResult::ok) return ended;
  if (rest.verify) {
    if (load_be16(udp + 6) == 0) {
      if (headers.flow.version == 6) return ParseResult::udp_checksum;  // RFC 8200 8.1
    } else {
      const ChecksumSum sum = pseudo_sum(headers.flow, kProtocolUdp, rest.length());
      if (checksum_of(checksum_add(sum, udp, rest.length())) != 0) return ParseResult::udp_checksum;
    }
  }
  headers.transport = Transport::udp;
  headers.flow.remote_port = load_be16(udp);
  headers.flow.local_port = load_be16(udp + 2);
  headers.payload_offset = rest.at + 8;
  headers.payload_length = rest.length() - 8;
  return ParseResult::ok;
}

}  // namespace detail

/// True if the first `count` bytes of a packet hold every header that parse_headers() reads when checksums are already
/// verified. Also false if that takes a closer look: VLAN tags, extension headers, and anything but TCP.
[[nodiscard]] HEADRACE_HD inline bool headers_lie_within(const std::byte* bytes, std::uint32_t count, Layer layer) {
  constexpr std::uint32_t kLinkBytes = 14;
  constexpr std::uint32_t kTcpBytes = 20;
  std::uint32_t at = layer == Layer::ethernet ? kLinkBytes : 0;
  if (count < at + 1) return false;
  const std::uint32_t version = load_8(bytes + at) >> 4;
  const std::uint32_t type = version == 4 ? detail::kTypeIpv4 : detail::kTypeIpv6;
  if ((version != 4 && version != 6) || (at != 0 && load_be16(bytes + at - 2) != type)) return false;
  const std::uint32_t ip = version == 4 ? (load_8(bytes + at) & 0xFU) * 4 : 40;
  if (count < at + ip + kTcpBytes || load_8(bytes + at + (version == 4 ? 9 : 6)) != detail::kProtocolTcp) return false;
  at += ip;
  return at + (load_8(bytes + at + 12) >> 4) * 4U <= count;
}

/// Reads the headers of the packet of packet.length bytes at `bytes`, and never beyond them, whatever they contain.
/// Verifies checksums unless the source did; that of UDP over IPv4 may be absent (0).
/// Requires: layer is not Layer::payload.
[[nodiscard, gnu::noinline]] HEADRACE_HD inline ParseResult parse_headers(const std::byte* bytes, const Packet& packet,
                                                                          Layer layer, Headers& headers) {
  headers = Headers{};
  if (packet.truncated) return ParseResult::snapped;
  detail::Rest rest{bytes, 0, packet.length, packet.segment_bytes != 0, !packet.checksum_verified};
  if (layer == Layer::ethernet) {
    const ParseResult link = detail::parse_ethernet(rest, headers);
    if (link != ParseResult::ok) return link;
  }
  if (rest.length() == 0) return ParseResult::truncated;
  std::uint32_t protocol = 0;
  ParseResult ip = ParseResult::not_ip;
  const std::uint32_t version = load_8(rest.next()) >> 4;
  if (version == 4) ip = detail::parse_ipv4(rest, headers, protocol);
  if (version == 6) ip = detail::parse_ipv6(rest, headers, protocol);
  if (ip != ParseResult::ok) return ip;
  if (protocol == detail::kProtocolTcp) return detail::parse_tcp(rest, headers);
  if (protocol == detail::kProtocolUdp) return detail::parse_udp(rest, headers);
  return ParseResult::protocol;
}

}  // namespace headrace::ingest
