#pragma once

#include <cstdint>

#include "ingest/tcp/state.hpp"

/// How long a connection without a stream may keep the receiver waiting.
namespace headrace::ingest::detail {

inline constexpr std::uint64_t kInvitation = 250 * TcpConfig::kMs;    ///< More than a terrestrial round trip.
inline constexpr std::uint64_t kInvitationMin = 50 * TcpConfig::kMs;  ///< For the peer's program to wake up.
inline constexpr std::uint64_t kInvitationMax = 10 * TcpConfig::kSecond;
/// A peer whose bytes were dropped retransmits them after at most this long (RFC 6298 2.5 allows a limit of 60 s or
/// more; Linux has 120 s).
inline constexpr std::uint64_t kRetransmitMax = 120 * TcpConfig::kSecond;

/// When SYN+ACK is retransmitted.
[[nodiscard]] HEADRACE_HD inline std::uint64_t half_open_end(const TcpConfig& config, const TcpRequest& request) {
  return request.since + (config.retransmit_first << request.tries);
}

/// When a silent connection is reset.
[[nodiscard]] HEADRACE_HD inline std::uint64_t silent_end(const TcpConfig& config, const TcpRequest& request) {
  if (config.first_byte_max == 0) return kNever;
  const std::uint64_t again = request.dropped ? lesser(4 * request.asks_every, kRetransmitMax) : 0;
  return request.since + greater(config.first_byte_max, again);
}

/// Approximately how much longer a peer's first retransmission timer is than Linux's least of 200 ms: RFC 6298 2.2, and
/// at most 1 s, because the peer itself decides how long its handshake takes.
[[nodiscard]] HEADRACE_HD inline std::uint64_t first_timer_of(const TcpRequest& request) {
  return request.round_trip_ns == 0 ? TcpConfig::kSecond : lesser(3 * request.round_trip_ns, TcpConfig::kSecond);
}

/// How long a place is kept. A peer that has bytes to send sends them a round trip after its window opens. A peer whose
/// bytes were dropped waits for its retransmission timer, which doubles each time.
[[nodiscard]] HEADRACE_HD inline std::uint64_t invitation_of(const TcpRequest& request) {
  if (request.dropped && request.asks_every == 0) return kInvitation + first_timer_of(request);
  if (request.dropped) return lesser(2 * request.asks_every + kInvitation, kInvitationMax);
  if (request.round_trip_ns == 0) return kInvitation;
  return lesser(4 * request.round_trip_ns + kInvitationMin, kInvitation);
}

}  // namespace headrace::ingest::detail
