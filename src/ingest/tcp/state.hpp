#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/intervals.hpp"
#include "headrace/ingest/detail/tcp_config.hpp"
#include "headrace/ingest/detail/tcp_counters.hpp"
#include "ingest/deadline.hpp"
#include "ingest/tcp/outgoing.hpp"
#include "ingest/tcp/reply.hpp"

/// The state of a TcpSequencer: one block of memory without pointers, so that host and device can copy it.
namespace headrace::ingest {

inline constexpr std::uint32_t kNoConnection = 0xFFFFFFFF;

/// The states of RFC 9293 3.3.2 that a passive open can reach. A TcpRequest stands for SYN-RECEIVED.
enum class TcpState : std::uint8_t {
  unused,
  established,
  close_wait,
  last_ack,
  fin_wait_1,
  fin_wait_2,
  closing,
  time_wait
};

/// Allows a number of events per second.
struct RateLimit {
  std::uint64_t since = 0;
  std::uint32_t used = 0;
  [[nodiscard]] HEADRACE_HD bool allows(std::uint64_t now, std::uint32_t per_second) {
    if (now - since >= TcpConfig::kSecond) {
      since = now;
      used = 0;
    }
    if (used >= per_second) return false;
    ++used;
    return true;
  }
};

/// The results of a handshake: both ends, their initial numbers, and the options that both agreed to.
struct TcpAgreement {
  Flow flow;
  LinkHeader link;
  std::uint8_t scale = 0;       ///< The scale of windows that this side offers.
  std::uint8_t peer_scale = 0;  ///< The scale of windows that the peer offers.
  bool timestamps = false;      ///< Both sides agreed to it, as with the next two.
  bool sack = false;
  bool scales = false;
  std::uint16_t mss = 0;               ///< The largest segment that the peer may send.
  std::uint16_t peer_mss = 0;          ///< The largest segment that the peer accepts.
  std::uint32_t initial_local = 0;     ///< Our initial sequence number.
  std::uint32_t initial_remote = 0;    ///< The peer's initial sequence number.
  std::uint32_t window_max = 0;        ///< The largest window to offer, in bytes.
  std::uint32_t peer_window = 0;       ///< SND.WND.
  std::uint32_t timestamp_recent = 0;  ///< TS.Recent.
  std::uint32_t timestamp_offset = 0;
  std::uint32_t bucket_next = kNoConnection;
  std::uint32_t list_next = kNoConnection;
  std::uint32_t list_previous = kNoConnection;
  RateLimit challenges;
  std::uint64_t offered = 0;  ///< The end of the window that the peer knows.
  std::uint64_t timestamp_recent_at = 0;
  std::uint64_t round_trip_ns = 0;  ///< SRTT and RTTVAR of RFC 6298.
  std::uint64_t round_trip_variation_ns = 0;
};

/// The state of a connection without a stream.
enum class RequestState : std::uint8_t {
  unused,
  half_open,  ///< SYN+ACK was sent; the peer may not exist.
  waiting,    ///< The handshake is complete. The window is closed: there was no place for a stream.
  invited,    ///< The window is open, and a place is kept for its first byte, for a moment.
  silent,     ///< The window is open, but the peer did not use its place in time: others may use it.
  refused,    ///< Its bytes were dropped, and the window is closed: the peer sends them again when its timer runs out.
  finished    ///< FIN came without a byte, and there was no place: the stream is known to be empty.
};

/// A connection without a stream: only its SYN is acknowledged.
struct TcpRequest : TcpAgreement {
  /// SYN+ACK is sent 1 + TcpConfig::retransmits_max times; there is a list of half-open connections for each.
  static constexpr std::uint32_t kTriesMax = 17;

  RequestState state = RequestState::unused;
  std::uint8_t tries = 0;        ///< Half-open: how often SYN+ACK was retransmitted.
  bool promised = false;         ///< Half-open: it was offered a window, and counts in half_open_promised.
  bool dropped = false;          ///< Bytes came when there was no place; the peer will retransmit them.
  std::uint64_t since = 0;       ///< When it entered this state.
  std::uint64_t until = 0;       ///< Invited: until when its place is kept.
  std::uint64_t asked_at = 0;    ///< When it last tried to send.
  std::uint64_t asks_every = 0;  ///< If bytes were dropped: the time between the last two tries; 0: only one try.
};

/// One connection with a stream. Stream offsets count from the byte after the peer's SYN and do not wrap; sequence
/// numbers do.
struct TcpConnection : TcpAgreement {
  static constexpr std::uint32_t kRecentMax = 4;

  TcpState state = TcpState::unused;
  bool finish_known = false;  ///< A FIN came: finish_offset is the end of the stream.
  bool finished = false;      ///< The FIN is accepted; sequence numbers are one ahead of the stream.
  bool closes = false;        ///< Our FIN follows the outgoing bytes, or has been sent.
  bool fin_sent = false;      ///< Our FIN has been sent; send_next counts it.
  bool leaving = false;       ///< `finished` and `closes`: only the peer's acknowledgement is missing.
  std::uint8_t retransmits = 0;
  std::uint8_t recent_count = 0;
  std::uint32_t stream = 0;
  std::uint32_t acknowledged = 0;          ///< SND.UNA.
  std::uint32_t send_next = 0;             ///< SND.NXT.
  std::uint32_t peer_window_sequence = 0;  ///< What peer_window was learnt from: SND.WL1, SND.WL2.
  std::uint32_t peer_window_acknowledgement = 0;
  std::uint32_t peer_window_max = 0;
  std::uint32_t last_acknowledgement = 0;  ///< The last one sent: Last.ACK.sent of RFC 7323.
  std::uint32_t timestamp_echoed = 0;      ///< The last of our timestamps that the peer echoed.
  std::uint32_t waiting_segments = 0;      ///< Segments accepted since the last acknowledgement.
  std::uint64_t limit = 0;                 ///< There is space for the stream up to here.
  std::uint64_t space_max = 0;             ///< The most space that there ever was.
  std::uint64_t finish_offset = 0;         ///< The end of the stream, if finish_known.
  std::uint64_t acknowledge_at = kNever;   ///< When a delayed acknowledgement is due.
  std::uint64_t act_at = kNever;           ///< When to retransmit, or to end TIME-WAIT.
  std::uint64_t heard_at = 0;              ///< When the last acceptable segment came, or the window opened again.
  std::uint64_t recent[kRecentMax] = {};   ///< An offset in each interval that changed last, the latest first.
  Intervals intervals;
  TcpOutgoing outgoing;

  /// RCV.NXT.
  [[nodiscard]] HEADRACE_HD std::uint32_t next_sequence() const {
    return initial_remote + 1 + static_cast<std::uint32_t>(intervals.next()) + (finished ? 1U : 0U);
  }
  [[nodiscard]] HEADRACE_HD std::uint32_t sequence_of(std::uint64_t offset) const {
    return initial_remote + 1 + static_cast<std::uint32_t>(offset);
  }
  [[nodiscard]] HEADRACE_HD bool receives() const {
    return state == TcpState::established || state == TcpState::fin_wait_1 || state == TcpState::fin_wait_2;
  }
  /// Bytes below this are acceptable: there is space, and a window can express it.
  [[nodiscard]] HEADRACE_HD std::uint64_t edge() const { return lesser(limit, intervals.next() + window_max); }
  /// Bytes from the next one on that the peer was told it may send, and that there is space for.
  [[nodiscard]] HEADRACE_HD std::uint64_t window() const {
    const std::uint64_t end = lesser(offered, limit);
    return end > intervals.next() ? end - intervals.next() : 0;
  }
};

/// A list of connections, the oldest first.
struct TcpList {
  std::uint32_t first = kNoConnection;
  std::uint32_t last = kNoConnection;
  std::uint32_t count = 0;
};

/// The connections without a stream, by RequestState. All lists but `invited` are in the order of TcpRequest::since.
struct TcpRequestLists {
  TcpList unused;
  TcpList half_open[TcpRequest::kTriesMax];  ///< By TcpRequest::tries.
  TcpList waiting;
  TcpList invited;  ///< At most as many as there are places plus no_shows.
  TcpList silent;
  TcpList refused;
  TcpList finished;
  std::uint32_t half_open_count = 0;     ///< Half-open connections, in all their lists.
  std::uint32_t half_open_promised = 0;  ///< Half-open connections on their first try that were offered a window.
  /// How many invited connections are expected to stay silent: grows by one with each invitation that ends unused, and
  /// shrinks as connections send; 0 once a connection found no place.
  std::uint32_t no_shows = 0;
  std::uint32_t shows = 0;          ///< Connections that sent while others were expected to stay silent.
  std::uint32_t invited_again = 0;  ///< Invited connections whose bytes were dropped before.
  /// Streams opened for connections that had finished, minus the places that have become free since.
  std::uint32_t empty_streams = 0;
  std::uint64_t next_deadline = kNever;  ///< Nothing of them is due before.

  /// Places that are kept for invited connections.
  [[nodiscard]] HEADRACE_HD std::uint32_t booked() const {
    return invited.count > no_shows ? invited.count - no_shows : 0;
  }

  /// Notes that a connection has sent. Shrinks no_shows so slowly that a burst of silent connections is still
  /// remembered when the next one comes.
  HEADRACE_HD void note_show() {
    constexpr std::uint32_t kShare = 64;
    constexpr std::uint32_t kShowsForOne = 16;
    no_shows -= no_shows / kShare;
    if (no_shows > 0 && ++shows % kShowsForOne == 0) --no_shows;
  }
};

struct TcpShared {
  /// Peers share a limit of resets only if their addresses have the same keyed hash.
  static constexpr std::uint32_t kResetLimits = 1024;

  TcpConfig config;
  TcpCounters counters;
  TcpList unused;
  TcpList time_wait;
  TcpList leaving;
  TcpList established;  ///< All other connections in use.
  TcpRequestLists requests;
  RateLimit resets[kResetLimits];
  std::uint64_t next_deadline = kNever;  ///< Nothing of connections with streams is due before.
  std::uint32_t connection_count = 0;
  std::uint32_t bucket_mask = 0;
  std::uint32_t request_bucket_mask = 0;
  std::uint32_t streams = 0;        ///< Streams opened so far: the number of the next one.
  std::uint32_t streams_limit = 0;  ///< Every stream with a lower number has a place. Numbers wrap.
  /// Every stream with a lower number can be given a place when it opens; so many connections may send.
  std::uint32_t streams_expected = 0;

  [[nodiscard]] HEADRACE_HD std::uint64_t deadline() const { return lesser(next_deadline, requests.next_deadline); }
  /// Streams that may be opened now, and soon.
  [[nodiscard]] HEADRACE_HD std::uint32_t places_now() const { return connections_of(streams_limit - streams); }
  [[nodiscard]] HEADRACE_HD std::uint32_t places() const { return connections_of(streams_expected - streams); }

 private:
  [[nodiscard]] HEADRACE_HD std::uint32_t connections_of(std::uint32_t streams_free) const {
    const std::uint32_t connections_free = unused.count + time_wait.count + leaving.count;
    return streams_free < connections_free ? streams_free : connections_free;
  }
};

/// Pointers into the state. Valid on the side, host or device, that owns the memory.
struct TcpView {
  TcpShared* shared = nullptr;
  TcpConnection* connections = nullptr;
  std::uint64_t* deadlines = nullptr;  ///< One per connection: nothing is due before it.
  std::uint32_t* buckets = nullptr;    ///< The first connection of each hash value.
  TcpRequest* requests = nullptr;
  std::uint32_t* request_buckets = nullptr;
};

/// Bytes of the state for `connections` (1 to 131,072) with streams, and for those without that `config` allows.
[[nodiscard]] std::size_t tcp_state_bytes(std::uint32_t connections, const TcpConfig& config);

/// The state in `memory` of tcp_state_bytes(connections, config), aligned to 64. Does not access the memory.
[[nodiscard]] TcpView tcp_view(void* memory, std::uint32_t connections, const TcpConfig& config);

/// Writes a state without connections to `memory`, which the host can write. Throws UsageError if check(config) does,
/// or if the number of connections is out of range.
TcpView make_tcp_state(void* memory, std::uint32_t connections, const TcpConfig& config);

}  // namespace headrace::ingest
