#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// What the headers of a packet say.
namespace headrace::ingest {

/// Who talks to whom, as this side sees it: `local` is where a received packet goes to. Addresses are as they lie in
/// the packet; one of IPv4 is in the first word.
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

/// The options of a TCP header that matter here (RFC 9293 3.2, 7323, 2018, 2385, 5925).
struct TcpOptions {
  std::uint32_t timestamp = 0;  ///< TSval; with timestamp_echo valid where has_timestamps.
  std::uint32_t timestamp_echo = 0;
  std::uint16_t mss = 0;  ///< 0: not said.
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
  std::uint32_t sequence = 0;  ///< From here on of TCP only.
  std::uint32_t acknowledgement = 0;
  TcpOptions options;
  std::uint16_t window = 0;
  Transport transport = Transport::tcp;
  std::uint8_t flags = 0;
  std::uint8_t link_length = 0;  ///< Of the Ethernet header with its VLAN tags; 0 where there is none.
};

/// How far a packet could be understood.
enum class ParseResult : std::uint8_t {
  ok,
  truncated,     ///< It ends before its headers, or before the length that they name.
  malformed,     ///< Lengths contradict each other.
  unsupported,   ///< Neither IPv4 nor IPv6, neither TCP nor UDP, or an extension header that cannot be skipped.
  fragment,      ///< Of IP; they are not put together.
  bad_checksum,  ///< Of IPv4, TCP or UDP.
};
inline constexpr std::uint32_t kParseResults = 6;

}  // namespace headrace::ingest
