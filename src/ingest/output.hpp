#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/piece.hpp"
#include "ingest/tcp/reply.hpp"

namespace headrace::ingest {

/// What happened to a stream.
enum class StreamEvent : std::uint8_t {
  opened,     ///< The first bytes may come.
  finished,   ///< The sender has ended the stream after `offset` bytes, and all of them are accepted.
  closed,     ///< Both sides have finished. Not reported if the connection gave way to a newer one before.
  reset,      ///< By the peer, or by abort(); `offset` bytes had come in order.
  timed_out,  ///< The peer was silent for too long; `offset` as for reset.
};

struct Event {
  std::uint64_t offset = 0;
  std::uint32_t stream = 0;
  std::uint32_t connection = 0;  ///< The argument for set_limit() and close().
  StreamEvent kind = StreamEvent::opened;
  Flow flow{};  ///< The two ends of the connection.
};

/// The output of a sequencer: arrays of the caller, which empties them by setting the counts to 0.
struct Output {
  Piece* pieces = nullptr;
  Reply* replies = nullptr;
  Event* events = nullptr;
  std::uint32_t pieces_max = 0;
  std::uint32_t replies_max = 0;
  std::uint32_t events_max = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t reply_count = 0;
  std::uint32_t event_count = 0;

  static constexpr std::uint32_t kRepliesOfPacket =
      2;  ///< Most replies to a packet; smaller arrays take no packet at all.
  static constexpr std::uint32_t kEventsOfPacket = 4;

  /// True if a packet can be taken. It may have more pieces than fit; the rest of it is then not accepted.
  [[nodiscard]] HEADRACE_HD bool has_room() const {
    return piece_count < pieces_max && reply_count + kRepliesOfPacket <= replies_max &&
           event_count + kEventsOfPacket <= events_max;
  }
  [[nodiscard]] HEADRACE_HD bool add(const Piece& piece) {
    if (piece_count == pieces_max) return false;
    pieces[piece_count++] = piece;
    return true;
  }
  [[nodiscard]] HEADRACE_HD bool add(const Event& event) {
    if (event_count == events_max) return false;
    events[event_count++] = event;
    return true;
  }
  /// The next reply, for the caller to write; null if there is no room.
  [[nodiscard]] HEADRACE_HD Reply* add_reply() {
    return reply_count == replies_max ? nullptr : &replies[reply_count++];
  }
  HEADRACE_HD void clear() { piece_count = reply_count = event_count = 0; }
};

}  // namespace headrace::ingest
