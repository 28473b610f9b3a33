#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"

/// What receivers of TCP count.
namespace headrace::ingest {

/// What the connections of one receiver have seen.
struct TcpCounters {
  std::uint64_t packets = 0;
  std::uint64_t unparsed[kParseResults] = {};  ///< By ParseResult.
  std::uint64_t not_tcp = 0;
  std::uint64_t signatures = 0;  ///< Segments dropped for an MD5 or TCP-AO option, which is never agreed to.
  std::uint64_t no_room = 0;     ///< Dropped because the output was full.
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;                 ///< Accepted.
  std::uint64_t duplicate_bytes = 0;       ///< Bytes that were accepted before.
  std::uint64_t unaccepted_bytes = 0;      ///< Beyond the space, or in an interval too many.
  std::uint64_t out_of_order = 0;          ///< Segments that left a gap before them.
  std::uint64_t gaps = 0;                  ///< Gaps that were opened.
  std::uint64_t late = 0;                  ///< Segments with new bytes below others: sent again, or overtaken.
  std::uint64_t duplicates = 0;            ///< Segments of which nothing was new.
  std::uint64_t out_of_window = 0;         ///< Segments that were not acceptable.
  std::uint64_t old_timestamps = 0;        ///< Dropped by PAWS.
  std::uint64_t missing_timestamps = 0;    ///< Segments without one although it was agreed to.
  std::uint64_t bad_acknowledgements = 0;  ///< Acknowledgements of what was never sent, or segments without one.
  std::uint64_t probes = 0;                ///< Probes of a closed window, or to keep alive.
  std::uint64_t challenges = 0;            ///< Acknowledgements sent for it (RFC 5961).
  std::uint64_t limited = 0;               ///< Answers left out because there were too many.
  std::uint64_t acknowledgements = 0;      ///< Sent.
  std::uint64_t window_updates = 0;
  std::uint64_t zero_windows = 0;  ///< Acknowledgements that closed the window.
  std::uint64_t resets_sent = 0;
  std::uint64_t retransmits = 0;  ///< How often the timer of SYN, FIN or what was to be said ran out.
  std::uint64_t sent_bytes = 0;   ///< Bytes of what was to be said; those that were sent again count once.
  std::uint64_t opened = 0;
  std::uint64_t finished = 0;
  std::uint64_t reset = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t refused = 0;              ///< SYNs for another port, or from or to no single host.
  std::uint64_t half_open_lost = 0;       ///< Replaced by newer ones, or given up.
  std::uint64_t syns_unanswered = 0;      ///< The backlog was full: peers try again.
  std::uint64_t connections = 0;          ///< Handshakes that were completed.
  std::uint64_t waited = 0;               ///< Connections that had to wait for a place for their stream.
  std::uint64_t left_silent = 0;          ///< Connections that the peer reset before it had sent a byte.
  std::uint64_t silent_timed_out = 0;     ///< Connections that were reset because they did not send a first byte.
  std::uint64_t closes_cut = 0;           ///< Connections that gave way before the peer acknowledged our FIN.
  std::uint64_t connections_waiting = 0;  ///< Now, for a place for their stream.
  std::uint64_t connections_silent = 0;   ///< Now: they may send, and have not.
  std::uint64_t unknown = 0;              ///< Segments of no connection.
  std::uint64_t round_trip_ns = 0;        ///< The latest of any connection; 0: none known.
  std::uint64_t round_trip_least_ns = 0;
};

}  // namespace headrace::ingest
