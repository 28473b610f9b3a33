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
  /// Take packets with wrong checksums: captured before the card filled them in. IPv4 packets of length 0 end with
  /// what was captured then.
  bool trust_checksums = false;
  /// Bytes that may wait in memory, of all streams together: segments behind a gap, and chunks that are not full.
  /// Beyond that, the gap that has been open for longest is given up. 1 MiB at least.
  std::size_t hold_bytes = 256 * kMiB;
  /// Connections that are remembered, 1 at least. Beyond that, the one that has been silent for longest is ended.
  std::size_t connections_max = std::size_t{1} << 18;
  /// How long, by the packets' own clock, a gap that the receiver has acknowledged stays open for packets that the
  /// capture holds out of order, and a connection that was reset for packets that were under way.
  Duration patience = std::chrono::seconds(1);
};

/// What a FollowSource has seen.
struct FollowCounters {
  std::uint64_t segments = 0;                ///< TCP segments that could be read and are not of another port.
  std::uint64_t other = 0;                   ///< Packets that are not TCP, or of another port.
  std::uint64_t unread[kParseResults] = {};  ///< Packets that could not be read, by ParseResult.
  std::uint64_t connections = 0;             ///< Connections that were begun, with data or without.
  std::uint64_t under_way = 0;               ///< Those of the connections whose start the capture lacks.
  std::uint64_t streams = 0;                 ///< Directions that carried bytes.
  std::uint64_t bytes = 0;                   ///< Bytes of all streams, without gaps.
  std::uint64_t gaps = 0;                    ///< Gaps that stayed.
  std::uint64_t missing_bytes = 0;           ///< In them.
  std::uint64_t out_of_order = 0;            ///< Segments that came before bytes which precede them.
  std::uint64_t duplicates = 0;              ///< Segments of which nothing was new: retransmissions, keep-alives.
  std::uint64_t duplicate_bytes = 0;         ///< Bytes that had come before; the first ones count, whatever these are.
  std::uint64_t late_bytes = 0;  ///< Bytes that came after their gap was given up, or after the end of their stream.
  std::uint64_t cut_bytes = 0;   ///< Payload that was on the wire, and that the capture cut off.
  std::uint64_t unproven_bytes =
      0;                        ///< Left out at the end: behind a gap of more than 16 MiB that nobody acknowledged.
  std::uint64_t given_up = 0;   ///< Gaps that were given up for want of memory (FollowOptions::hold_bytes).
  std::uint64_t forgotten = 0;  ///< Connections ended to make place (FollowOptions::connections_max).
};

/// What has become of a followed stream, in order.
struct Followed {
  enum class Kind : std::uint8_t {
    bytes,     ///< `length` bytes at `offset`. They lie at `ring_offset` of the ring.
    missing,   ///< The same, and they are zeros: the capture lacks them.
    finished,  ///< FIN: `offset` bytes are all.
    reset,     ///< By either end; `offset` bytes were captured or are missing before.
    cut        ///< The packets ended, or the connection was forgotten, before its end.
  };
  Kind kind = Kind::bytes;
  std::uint32_t stream = 0;  ///< Streams count from 0 in the order of their first byte.
  Flow flow{};               ///< `remote` sends to `local`.
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t ring_offset = 0;
  std::uint64_t ring_end = 0;  ///< Position of the ring behind the slot.
};

/// A source that follows the TCP connections in another's packets passively: it believes both ends and sends nothing.
/// Each direction of a connection is a stream. Its slots hold payload alone, in order within each stream; followed()
/// says of which stream. Rules are in docs/ingest-follow.md.
class FollowSource : public Source {
 public:
  /// What receive() has given so far. The reader removes what it has dealt with; ended() waits for that.
  [[nodiscard]] virtual std::deque<Followed>& followed() noexcept = 0;
  [[nodiscard]] virtual FollowCounters follow_counters() const noexcept = 0;
  [[nodiscard]] virtual FragmentCounters fragment_counters() const = 0;
};

/// IP fragments are put together first.
/// @param inner  fills `between`, a ring in host memory that nobody else uses and that outlives this source.
/// Damage in a capture is an error of receive() after everything that precedes it, streams' ends included.
/// Throws UsageError for options out of range.
[[nodiscard]] std::unique_ptr<FollowSource> make_follow_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                               const FollowOptions& options = {});

}  // namespace headrace::ingest
