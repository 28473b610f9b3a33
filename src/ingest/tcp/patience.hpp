#pragma once

#include <cstdint>

#include "ingest/tcp/state.hpp"

/// How long a connection without a stream is waited for.
namespace headrace::ingest::detail {

inline constexpr std::uint64_t kInvitation = 250 * TcpConfig::kMs;    ///< More than a round trip on the Earth.
inline constexpr std::uint64_t kInvitationMin = 50 * TcpConfig::kMs;  ///< For the peer's program to wake up.
inline constexpr std::uint64_t kInvitationMax = 10 * TcpConfig::kSecond;
/// A peer whose bytes were dropped sends them again after so long at most (RFC 6298 2.5 allows a limit of 60 s or
/// more; Linux has 120 s).
inline constexpr std::uint64_t kRetransmitMax = 120 * TcpConfig::kSecond;

/// When SYN+ACK is sent again.
[[nodiscard]] HEADRACE_HD inline std::uint64_t half_open_end(const TcpConfig& config, const TcpRequest& request) {
  return request.since + (config.retransmit_first << request.tries);
}

/// When a silent one is reset.
[[nodiscard]] HEADRACE_HD inline std::uint64_t silent_end(const TcpConfig& config, const TcpRequest& request) {
  if (config.first_byte_max == 0) return kNever;
  const std::uint64_t again = request.dropped ? lesser(4 * request.asks_every, kRetransmitMax) : 0;
  return request.since + greater(config.first_byte_max, again);
}

/// What a peer's first retransmission timer adds to Linux's least of 200 ms, about: RFC 6298 2.2, and 1 s at most,
/// since the peer itself decides how long its handshake takes.
[[nodiscard]] HEADRACE_HD inline std::uint64_t first_timer_of(const TcpRequest& request) {
  return request.round_trip_ns == 0 ? TcpConfig::kSecond : lesser(3 * request.round_trip_ns, TcpConfig::kSecond);
}

/// For how long a place is kept. A peer that has something to say says it a round trip after its window opens. One
/// whose bytes were dropped waits for its retransmission timer, which doubles each time.
[[nodiscard]] HEADRACE_HD inline std::uint64_t invitation_of(const TcpRequest& request) {
  if (request.dropped && request.asks_every == 0) return kInvitation + first_timer_of(request);
  if (request.dropped) return lesser(2 * request.asks_every + kInvitation, kInvitationMax);
  if (request.round_trip_ns == 0) return kInvitation;
  return lesser(4 * request.round_trip_ns + kInvitationMin, kInvitation);
}

}  // namespace headrace::ingest::detail
