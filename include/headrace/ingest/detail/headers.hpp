#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/device/group.hpp"

/// The contents of a packet's headers.
namespace headrace::ingest {

/// Most VLAN tags that a packet may have: one of a customer and two of providers.
inline constexpr std::uint32_t kVlanTagsMax = 3;
/// The longest Ethernet header: two addresses, the type, and four bytes for each tag.
inline constexpr std::uint32_t kLinkBytesMax = 14 + 4 * kVlanTagsMax;

/// The two ends of a conversation as this side sees it: `local` is the destination of a received packet. Addresses have
/// the packet's byte order; an IPv4 address is in the first word.
struct Flow {
  std::uint32_t remote[4] = {0, 0, 0, 0};
  std::uint32_t local[4] = {0, 0, 0, 0};
  std::uint16_t remote_port = 0;
  std::uint16_t local_port = 0;
  std::uint32_t version = 0;  ///< 4 or 6.

  static constexpr std::uint32_t kWords = 5;
  HEADRACE_HD void words(std::uint64_t (&to)[kWords]) const {
    to[0] = (std::uint64_t{remote[0]} << 32) | remote[1];
    to[1] = (std::uint64_t{remote[2]} << 32) | remote[3];
    to[2] = (std::uint64_t{local[0]} << 32) | local[1];
    to[3] = (std::uint64_t{local[2]} << 32) | local[3];
    to[4] = (std::uint64_t{version} << 32) | (std::uint64_t{remote_port} << 16) | local_port;
  }
};

[[nodiscard]] HEADRACE_HD inline bool same_flow(const Flow& a, const Flow& b) {
  bool same = a.remote_port == b.remote_port && a.local_port == b.local_port && a.version == b.version;
  for (int i = 0; i < 4; ++i) same = same && a.remote[i] == b.remote[i] && a.local[i] == b.local[i];
  return same;
}

enum class Transport : std::uint8_t { tcp, udp };

namespace tcp_flag {
inline constexpr std::uint8_t kFin = 0x01;
inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kRst = 0x04;
inline constexpr std::uint8_t kPsh = 0x08;
inline constexpr std::uint8_t kAck = 0x10;
}  // namespace tcp_flag

/// The options of a TCP header that Headrace uses (RFC 9293 3.2, 7323, 2018, 2385, 5925).
struct TcpOptions {
  std::uint32_t timestamp = 0;  ///< TSval; it and timestamp_echo are valid if has_timestamps.
  std::uint32_t timestamp_echo = 0;
  std::uint16_t mss = 0;  ///< 0: absent.
  std::uint8_t window_scale = 0;
  bool has_window_scale = false;
  bool has_timestamps = false;
  bool sack_permitted = false;
  bool has_signature = false;  ///< An MD5 signature, or TCP-AO.
};

/// The headers of one packet. Offsets count from its first byte.
struct Headers {
  Flow flow;
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_length = 0;
  std::uint32_t sequence = 0;  ///< TCP only, as are acknowledgement, options, window and flags.
  std::uint32_t acknowledgement = 0;
  TcpOptions options;
  std::uint16_t window = 0;
  Transport transport = Transport::tcp;
  std::uint8_t flags = 0;
  std::uint8_t link_length = 0;  ///< Bytes of the Ethernet header with its VLAN tags, kLinkBytesMax at most; 0: none.
};

/// The result for a packet: `ok`, or the reason why it was refused. Parsing gives the reasons up to `udp_checksum`; the
/// user of the payload gives those after it. Counters have an entry for each: see to_string().
enum class ParseResult : std::uint8_t {
  ok,
  truncated,     ///< It ends before its headers, or before the length that they give.
  snapped,       ///< Only its beginning is present: the capture or the ring's slot was too short.
  malformed,     ///< Its lengths contradict each other.
  arp,           ///< It carries ARP, not IP.
  not_ip,        ///< Neither IPv4 nor IPv6.
  vlan_depth,    ///< More VLAN tags than kVlanTagsMax.
  extension,     ///< An IPv6 extension header that cannot be skipped, or more than eight of them.
  routing,       ///< An IPv6 routing header with segments left: the packet is on its way to another address.
  protocol,      ///< IP, but neither TCP nor UDP.
  fragment,      ///< A fragment of an IP packet.
  ip_checksum,   ///< The checksum of the IPv4 header is wrong.
  tcp_checksum,  ///< The checksum of TCP is wrong.
  udp_checksum,  ///< The checksum of UDP is wrong, or absent over IPv6.
  not_udp,       ///< TCP, while datagrams are received.
  other_port,    ///< A datagram to another port.
  other_sender,  ///< A datagram from a sender that the filter leaves out.
  no_number,     ///< A datagram that ends before its number or its header does.
  too_long,      ///< A datagram with more payload than fits in its place.
  no_place,      ///< A datagram whose part is not a multiple of the payload, or lies beyond its group.
  too_many,      ///< A datagram of a sender for whose stream there is no place or no memory.
};
inline constexpr std::uint32_t kParseResults = 21;

/// A name such as "udp_checksum", which counters carry in Python, JSON and Prometheus.
[[nodiscard]] std::string_view to_string(ParseResult result) noexcept;

}  // namespace headrace::ingest
