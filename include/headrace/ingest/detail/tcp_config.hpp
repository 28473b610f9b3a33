#pragma once

#include <cstdint>

#include "headrace/ingest/detail/siphash.hpp"

namespace headrace::ingest {

/// How a TcpSequencer answers. Times are in nanoseconds.
struct TcpConfig {
  /// Linux's TCP_PAWS_WINDOW: how far a timestamp may go back, since a peer's processors may differ by one tick.
  static constexpr std::int32_t kTicksBack = 1;
  static constexpr std::uint64_t kMs = 1'000'000;
  static constexpr std::uint64_t kSecond = 1'000 * kMs;

  HashKey key{};                              ///< Secret and random, or initial sequence numbers can be guessed.
  std::uint16_t port = 0;                     ///< The port that connections are accepted on; 0: any.
  std::uint16_t mtu = 1500;                   ///< The largest IP packet that may come; 576 to 65,535 bytes.
  std::uint32_t window_bytes_max = 16 << 20;  ///< The largest window to offer, at most 1 GiB - 16 KiB.
  std::uint64_t initial_limit = 0;            ///< Bytes of space that every new stream has from the start.
  std::uint32_t initial_streams = 0;          ///< Streams that have a place from the start.
  /// A stream opens with its first byte or FIN, and takes a place only then. Off: with the handshake, for protocols in
  /// which this side speaks first.
  bool open_at_first_byte = true;
  bool timestamps = true;             ///< Agree to timestamps (RFC 7323) if offered.
  bool sack = true;                   ///< Agree to selective acknowledgement (RFC 2018) if offered.
  bool reset_unknown = true;          ///< Answer segments of no connection with RST; else stay silent.
  bool close_when_finished = true;    ///< Send FIN as soon as the peer's FIN is accepted; else wait for close().
  bool acknowledge_per_burst = true;  ///< One acknowledgement for the in-order segments of a burst.
  std::uint32_t segments_per_acknowledgement =
      2;  ///< At least one acknowledgement for so many segments (RFC 9293 3.8.6.3).
  std::uint64_t acknowledgement_delay = 40 * kMs;  ///< At most 500 ms.
  std::uint64_t retransmit_first = kSecond;  ///< The least retransmission timeout, which doubles each time (RFC 6298).
  std::uint32_t retransmits_max = 5;         ///< Retransmissions after which the connection is given up.
  std::uint64_t time_wait = 60 * kSecond;    ///< Twice the maximum segment lifetime.
  /// A connection that has sent nothing acceptable for so long is reset; 0: never. Time in which this side keeps the
  /// window closed does not count.
  std::uint64_t idle_max = 300 * kSecond;
  std::uint64_t first_byte_max =
      30 * kSecond;                          ///< The same from the time at which it may send its first byte; 0: never.
  std::uint64_t timestamp_tick = kMs;        ///< 1 ms to 1 s by RFC 7323 5.4; round trips are counted in it.
  std::uint32_t half_open_max = 16'384;      ///< Connections whose handshake is not complete; 1 to 1,048,576.
  std::uint32_t backlog = 4'096;             ///< Connections without a stream; beyond that, SYNs stay unanswered.
  std::uint32_t challenges_per_second = 10;  ///< The limit of each connection (RFC 5961 7).
  std::uint32_t resets_per_second =
      100;  ///< To each peer for segments of no connection; each second draws a limit between half and all of it.
};

/// Throws UsageError that names the value out of range.
void check(const TcpConfig& config);

}  // namespace headrace::ingest
