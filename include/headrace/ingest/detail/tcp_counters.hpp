#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"

/// The counters of TCP receivers.
namespace headrace::ingest {

/// What the connections of one receiver have seen.
struct TcpCounters {
  std::uint64_t packets = 0;
  std::uint64_t unparsed[kParseResults] = {};  ///< By ParseResult.
  std::uint64_t not_tcp = 0;
  std::uint64_t signatures = 0;  ///< Segments dropped for an MD5 or TCP-AO option, which is never agreed to.
  std::uint64_t no_room = 0;     ///< Dropped because the output was full.
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;                 ///< Bytes accepted.
  std::uint64_t duplicate_bytes = 0;       ///< Bytes that were accepted before.
  std::uint64_t unaccepted_bytes = 0;      ///< Bytes beyond the space, or that would need an interval too many.
  std::uint64_t out_of_order = 0;          ///< Segments that left a gap before them.
  std::uint64_t gaps = 0;                  ///< Gaps that were opened.
  std::uint64_t late = 0;                  ///< Segments with new bytes below accepted ones: retransmitted or reordered.
  std::uint64_t duplicates = 0;            ///< Segments without new bytes.
  std::uint64_t out_of_window = 0;         ///< Segments that were not acceptable.
  std::uint64_t old_timestamps = 0;        ///< Dropped by PAWS.
  std::uint64_t missing_timestamps = 0;    ///< Segments without a timestamp although it was agreed to.
  std::uint64_t bad_acknowledgements = 0;  ///< Acknowledgements of bytes never sent, or segments without one.
  std::uint64_t probes = 0;                ///< Zero-window probes and keep-alives.
  std::uint64_t challenges = 0;            ///< Challenge acknowledgements sent (RFC 5961).
  std::uint64_t limited = 0;               ///< Challenges and resets that a rate limit suppressed.
  std::uint64_t acknowledgements = 0;      ///< Acknowledgements sent.
  std::uint64_t window_updates = 0;
  std::uint64_t zero_windows = 0;  ///< Acknowledgements that closed the window.
  std::uint64_t resets_sent = 0;
  std::uint64_t retransmits = 0;  ///< Expirations of the timer of a SYN, a FIN or answers.
  std::uint64_t sent_bytes = 0;   ///< Bytes of answers; retransmitted bytes count once.
  std::uint64_t opened = 0;
  std::uint64_t finished = 0;
  std::uint64_t reset = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t refused = 0;              ///< SYNs for another port, or from or to no single host.
  std::uint64_t half_open_lost = 0;       ///< Half-open connections replaced by newer ones, or given up.
  std::uint64_t syns_unanswered = 0;      ///< SYNs ignored because the backlog was full; peers try again.
  std::uint64_t connections = 0;          ///< Completed handshakes.
  std::uint64_t waited = 0;               ///< Connections that had to wait for a place for their stream.
  std::uint64_t left_silent = 0;          ///< Connections that the peer reset before it had sent a byte.
  std::uint64_t silent_timed_out = 0;     ///< Connections that were reset because they did not send a first byte.
  std::uint64_t closes_cut = 0;           ///< Connections that gave way before the peer acknowledged our FIN.
  std::uint64_t connections_waiting = 0;  ///< Connections that wait now for a place for their stream.
  std::uint64_t connections_silent = 0;   ///< Connections that may send now and have not yet.
  std::uint64_t unknown = 0;              ///< Segments of no connection.
  std::uint64_t round_trip_ns = 0;        ///< The latest round trip of any connection; 0: none known.
  std::uint64_t round_trip_least_ns = 0;
};

}  // namespace headrace::ingest
