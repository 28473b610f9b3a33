#pragma once

// A FollowSource follows the TCP connections between other machines in the packets of another source, such as a
// capture: each direction is a stream.
//
//     auto follow = [](std::unique_ptr<headrace::ingest::Source> capture, headrace::Ring& captured) {
//       headrace::Ring ring(headrace::Device::parse("cpu"), headrace::MemoryKind::mapped, 65536, 64);
//       auto source = headrace::ingest::make_follow_source(ring, std::move(capture), captured, {.port = 80});
//       std::vector<headrace::ingest::Packet> burst(64);
//       source->receive(burst, std::chrono::seconds(1)).or_throw("following connections");
//       for (const auto& part : source->followed()) std::printf("a part of stream %u\n", part.stream);
//     };

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/ring.hpp"
#include "headrace/ingest/detail/fragments.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// How TCP connections are followed.
struct FollowOptions {
  std::uint16_t port = 0;  ///< Follow only connections with this port at either end; 0: all connections.
  /// Accepts packets with wrong checksums, as captured before the network card filled them in. IPv4 packets of length 0
  /// then end where the captured packet does.
  bool trust_checksums = false;
  /// Most bytes held in memory for all streams together: segments behind a gap, and chunks that are not full. Beyond
  /// that, the gap that has been open longest is given up. At least 1 MiB.
  std::size_t hold_bytes = 256 * kMiB;
  /// Most connections tracked, at least 1. Beyond that, the one that has been idle longest is ended.
  std::size_t connections_max = std::size_t{1} << 18;
  /// How long, by the packets' timestamps, a gap that the receiver has acknowledged stays open for packets that the
  /// capture holds out of order, and a connection that was reset stays open for packets in flight.
  Duration patience = std::chrono::seconds(1);
};

/// What a FollowSource has seen.
struct FollowCounters {
  std::uint64_t segments = 0;                ///< TCP segments that could be read and are of the followed port.
  std::uint64_t other = 0;                   ///< Packets that are not TCP, or of another port.
  std::uint64_t unread[kParseResults] = {};  ///< Packets that could not be read, by ParseResult.
  std::uint64_t connections = 0;             ///< Connections that were begun, with data or without.
  std::uint64_t under_way = 0;               ///< Connections whose start the capture lacks.
  std::uint64_t streams = 0;                 ///< Directions that carried bytes.
  std::uint64_t bytes = 0;                   ///< Bytes of all streams, without gaps.
  std::uint64_t gaps = 0;                    ///< Gaps that were never filled.
  std::uint64_t missing_bytes = 0;           ///< Bytes of those gaps.
  std::uint64_t out_of_order = 0;            ///< Segments that came before bytes which precede them.
  std::uint64_t duplicates = 0;              ///< Segments without new bytes: retransmissions, keep-alives.
  std::uint64_t duplicate_bytes = 0;  ///< Bytes that had come before; the first copy counts, even if they differ.
  std::uint64_t late_bytes = 0;  ///< Bytes that came after their gap was given up, or after the end of their stream.
  std::uint64_t cut_bytes = 0;   ///< Payload that was on the wire and that the capture cut off.
  std::uint64_t unproven_bytes = 0;  ///< Left out at the end: behind a gap of more than 16 MiB without acknowledgement.
  std::uint64_t given_up = 0;        ///< Gaps given up for lack of memory (FollowOptions::hold_bytes).
  std::uint64_t forgotten = 0;       ///< Connections ended to make room (FollowOptions::connections_max).
};

/// One event of a followed stream. Events of a stream come in order.
struct Followed {
  /// What happened.
  enum class Kind : std::uint8_t {
    bytes,     ///< `length` bytes at stream offset `offset`, which lie at `ring_offset` of the ring.
    missing,   ///< The same, but the capture lacks them and the ring holds zeros.
    finished,  ///< FIN: the stream has `offset` bytes.
    reset,     ///< Reset by either end after `offset` bytes, captured or missing.
    cut        ///< The packets ended, or the connection was forgotten, before the end of the stream.
  };
  Kind kind = Kind::bytes;        ///< What happened.
  std::uint32_t stream = 0;       ///< Streams count from 0 in the order of their first byte.
  Flow flow{};                    ///< `remote` sends to `local`.
  std::uint64_t offset = 0;       ///< An offset in the stream; see Kind.
  std::uint64_t length = 0;       ///< Bytes, for `bytes` and `missing`.
  std::uint64_t ring_offset = 0;  ///< Where the bytes lie, from the first byte of the ring's memory.
  std::uint64_t ring_end = 0;     ///< Position of the ring after the slot.
};

/// A source that passively follows the TCP connections in the packets of another source: it trusts both ends and sends
/// nothing. Each direction of a connection is a stream. Slots hold payload alone, in order within each stream;
/// followed() names the stream. docs/ingest-follow.md has the rules.
class FollowSource : public Source {
 public:
  /// The events of what receive() has returned so far. The reader removes those that it has processed; ended() is true
  /// only once none are left.
  [[nodiscard]] virtual std::deque<Followed>& followed() noexcept = 0;
  /// What it has seen of connections since it was made.
  [[nodiscard]] virtual FollowCounters follow_counters() const noexcept = 0;
  /// What it has seen of IP fragments since it was made.
  [[nodiscard]] virtual FragmentCounters fragment_counters() const = 0;
};

/// Makes a source that follows the connections in the packets of `inner`. It reassembles IP fragments first.
/// @param inner  fills `between`, a ring in host memory that is used by nothing else and outlives this source.
///
/// Damage in a capture is an error of receive() after everything before it, including the ends of streams. Throws
/// UsageError for options out of range.
[[nodiscard]] std::unique_ptr<FollowSource> make_follow_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                               const FollowOptions& options = {});

}  // namespace headrace::ingest
