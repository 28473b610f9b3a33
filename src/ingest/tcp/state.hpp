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

/// What a TcpSequencer keeps. All of it lies in one block of memory that holds no pointer: it may be copied between
/// host and device.
namespace headrace::ingest {

inline constexpr std::uint32_t kNoConnection = 0xFFFFFFFF;

/// RFC 9293 3.3.2, as far as a passive open leads to them. SYN-RECEIVED is that of a TcpRequest.
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

/// At most so many in a second.
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

/// What a handshake settles: both ends, their initial numbers, and the options that both agreed to.
struct TcpAgreement {
  Flow flow;
  LinkHeader link;
  std::uint8_t scale = 0;       ///< The scale of windows that this side offers.
  std::uint8_t peer_scale = 0;  ///< The scale of windows that the peer offers.
  bool timestamps = false;      ///< These three: both sides agreed to it.
  bool sack = false;
  bool scales = false;
  std::uint16_t mss = 0;               ///< The largest segment that the peer was told.
  std::uint16_t peer_mss = 0;          ///< The largest that it takes.
  std::uint32_t initial_local = 0;     ///< Our initial sequence number.
  std::uint32_t initial_remote = 0;    ///< The peer's.
  std::uint32_t window_max = 0;        ///< The largest to offer, in bytes.
  std::uint32_t peer_window = 0;       ///< SND.WND.
  std::uint32_t timestamp_recent = 0;  ///< TS.Recent.
  std::uint32_t timestamp_offset = 0;
  std::uint32_t bucket_next = kNoConnection;
  std::uint32_t list_next = kNoConnection;
  std::uint32_t list_previous = kNoConnection;
  RateLimit challenges;
  std::uint64_t offered = 0;  ///< The end of the window that the peer was told.
  std::uint64_t timestamp_recent_at = 0;
  std::uint64_t round_trip_ns = 0;  ///< SRTT and RTTVAR of RFC 6298.
  std::uint64_t round_trip_variation_ns = 0;
};

/// Where a connection without a stream stands.
enum class RequestState : std::uint8_t {
  unused,
  half_open,  ///< SYN+ACK was sent; the peer may not exist.
  waiting,    ///< The handshake is complete. The window is closed: there was no place for a stream.
  invited,    ///< The window is open, and a place is kept for its first byte, for a moment.
  silent,     ///< The window is open, but the peer did not use its place in time: others may take it.
  refused,    ///< Its bytes were dropped, and the window is closed: the peer sends them again when its timer runs out.
  finished    ///< FIN came without a byte, and there was no place: the stream is known to be empty.
};

/// A connection without a stream: nothing that it has sent is acknowledged but its SYN.
struct TcpRequest : TcpAgreement {
  /// SYN+ACK is sent 1 + TcpConfig::retransmits_max times; there is a list of half-open connections for each.
  static constexpr std::uint32_t kTriesMax = 17;

  RequestState state = RequestState::unused;
  std::uint8_t tries = 0;        ///< Half-open: times that SYN+ACK was sent again.
  bool promised = false;         ///< Half-open: it was offered a window, and counts as TcpShared::half_open_promised.
  bool dropped = false;          ///< Bytes came when there was no place; the peer will send them again.
  std::uint64_t since = 0;       ///< In this state.
  std::uint64_t until = 0;       ///< Invited: a place is kept.
  std::uint64_t asked_at = 0;    ///< The last time that it wanted to send.
  std::uint64_t asks_every = 0;  ///< Where bytes were dropped: the time between the last two; 0: they came once.
};

/// One connection with a stream. Stream offsets count from the byte after the peer's SYN and do not wrap; sequence
/// numbers do.
struct TcpConnection : TcpAgreement {
  static constexpr std::uint32_t kRecentMax = 4;

  TcpState state = TcpState::unused;
  bool finish_known = false;  ///< A FIN came: finish_offset is the end of the stream.
  bool finished = false;      ///< It is accepted; sequence numbers are one further than the stream.
  bool closes = false;        ///< FIN is to be sent behind what is outgoing, or is sent.
  bool fin_sent = false;      ///< send_next is behind it.
  bool leaving = false;       ///< `finished` and `closes`: only the peer's acknowledgement is missing.
  std::uint8_t retransmits = 0;
  std::uint8_t recent_count = 0;
  std::uint32_t stream = 0;
  std::uint32_t acknowledged = 0;          ///< By the peer: SND.UNA.
  std::uint32_t send_next = 0;             ///< SND.NXT.
  std::uint32_t peer_window_sequence = 0;  ///< What peer_window was learnt from: SND.WL1, SND.WL2.
  std::uint32_t peer_window_acknowledgement = 0;
  std::uint32_t peer_window_max = 0;
  std::uint32_t last_acknowledgement = 0;  ///< The last one sent: Last.ACK.sent of RFC 7323.
  std::uint32_t timestamp_echoed = 0;      ///< The last of ours that came back.
  std::uint32_t waiting_segments = 0;      ///< Accepted since the last acknowledgement.
  std::uint64_t limit = 0;                 ///< There is space for the stream up to here.
  std::uint64_t space_max = 0;             ///< The most space that there ever was.
  std::uint64_t finish_offset = 0;         ///< Where finish_known.
  std::uint64_t acknowledge_at = kNever;   ///< A delayed acknowledgement is due.
  std::uint64_t act_at = kNever;           ///< To retransmit, or to end the time to wait.
  std::uint64_t heard_at = 0;              ///< When the last acceptable segment came, or the window opened again.
  std::uint64_t recent[kRecentMax] = {};   ///< In the intervals that changed last, the latest first.
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
  /// Bytes below are acceptable: there is space, and a window can say so.
  [[nodiscard]] HEADRACE_HD std::uint64_t edge() const { return lesser(limit, intervals.next() + window_max); }
  /// Bytes that the peer was told it may send, from the next one on, and that there is space for.
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

/// The connections without a stream, by RequestState. Lists are in the order of TcpRequest::since, the one of those
/// invited apart.
struct TcpRequestLists {
  TcpList unused;
  TcpList half_open[TcpRequest::kTriesMax];  ///< By TcpRequest::tries.
  TcpList waiting;
  TcpList invited;  ///< No more than there are places, and no_shows.
  TcpList silent;
  TcpList refused;
  TcpList finished;
  std::uint32_t half_open_count = 0;     ///< The connections in all their lists.
  std::uint32_t half_open_promised = 0;  ///< Those on their first try that were offered a window.
  /// So many of those invited are expected to stay silent: grows by one with each invitation that ends unused, and
  /// shrinks with connections that speak; 0 once there was no place for one.
  std::uint32_t no_shows = 0;
  std::uint32_t shows = 0;          ///< Connections that spoke while others were expected to stay silent.
  std::uint32_t invited_again = 0;  ///< Those invited whose bytes were dropped before.
  /// Streams that were opened for those that had finished, less the places that have come back since.
  std::uint32_t empty_streams = 0;
  std::uint64_t next_deadline = kNever;  ///< Nothing of them is due before.

  /// Places that are kept for those invited.
  [[nodiscard]] HEADRACE_HD std::uint32_t booked() const {
    return invited.count > no_shows ? invited.count - no_shows : 0;
  }

  /// A connection has spoken. So slow that a burst of silent connections is still remembered when the next one comes.
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
  TcpList established;  ///< And all others that are in use.
  TcpRequestLists requests;
  RateLimit resets[kResetLimits];
  std::uint64_t next_deadline = kNever;  ///< Nothing of connections with streams is due before.
  std::uint32_t connection_count = 0;
  std::uint32_t bucket_mask = 0;
  std::uint32_t request_bucket_mask = 0;
  std::uint32_t streams = 0;        ///< Opened so far: the number of the next.
  std::uint32_t streams_limit = 0;  ///< There is a place for every stream with a number below. Numbers wrap.
  /// Places for streams with a number below can be made as they are opened: connections are let send for so many.
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

/// Where the state lies. Valid on the side whose memory it is.
struct TcpView {
  TcpShared* shared = nullptr;
  TcpConnection* connections = nullptr;
  std::uint64_t* deadlines = nullptr;  ///< One a connection: nothing is due before.
  std::uint32_t* buckets = nullptr;    ///< The first connection of each hash value.
  TcpRequest* requests = nullptr;
  std::uint32_t* request_buckets = nullptr;
};

/// The bytes that the state of at most `connections` (1 to 131,072) with streams takes, and of as many without as
/// `config` says.
[[nodiscard]] std::size_t tcp_state_bytes(std::uint32_t connections, const TcpConfig& config);

/// The state in `memory` of tcp_state_bytes(connections, config), aligned to 64. Touches nothing.
[[nodiscard]] TcpView tcp_view(void* memory, std::uint32_t connections, const TcpConfig& config);

/// Makes `memory`, which the host can write, the state of no connection. Throws UsageError where check(config) does, or
/// the number of connections is out of range.
TcpView make_tcp_state(void* memory, std::uint32_t connections, const TcpConfig& config);

}  // namespace headrace::ingest
