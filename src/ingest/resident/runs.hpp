#pragma once

#include <cstdint>

#include "headrace/ingest/detail/wire.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

/// True if `next` continues where `before` ends and carries nothing else, so that a sequencer may take both as one
/// segment, as it takes segments that a kernel or a network card merged.
[[nodiscard]] HEADRACE_HD inline bool continues(const Parsed& before, const Parsed& next) {
  const auto plain = [](const Parsed& parsed) {
    return parsed.result == ParseResult::ok && parsed.headers.transport == Transport::tcp &&
           parsed.headers.payload_length > 0 && (parsed.headers.flags & ~tcp_flag::kPsh) == tcp_flag::kAck;
  };
  const Headers& a = before.headers;
  const Headers& b = next.headers;
  return plain(before) && plain(next) && b.sequence == a.sequence + a.payload_length &&
         b.acknowledgement == a.acknowledgement && b.window == a.window && b.link_length == a.link_length &&
         b.options.has_timestamps == a.options.has_timestamps && b.options.timestamp == a.options.timestamp &&
         b.options.timestamp_echo == a.options.timestamp_echo && same_flow(a.flow, b.flow);
}

/// Shared memory of the threads of the acknowledge role.
struct Window {
  std::uint64_t heard[kHostWords];
  std::uint64_t deadline;  ///< The deadline of the sequencer.
  std::uint64_t commands_done;
  std::uint64_t retired;             ///< Batches that have been copied.
  std::uint64_t bytes;               ///< Accepted bytes.
  std::uint32_t start[kWindow + 1];  ///< Payload bytes of the packets before each.
  std::uint32_t parts[kWindow];      ///< Parts of the packets before each.
  std::uint16_t run_of[kWindow];
  std::uint16_t first[kWindow + 1];   ///< First packet of each run.
  std::uint16_t pieces[kWindow + 1];  ///< Pieces of the runs before each.
  std::uint32_t run_count;
  std::uint32_t taken;  ///< Packets taken, in whole runs.
  std::uint32_t piece_count;
  std::uint32_t reply_count;
  std::uint32_t event_count;
  bool report;                          ///< The host has asked for counters.
  std::uint64_t window_least[kWindow];  ///< The smallest window that each thread found.
};

/// Runs of packets that each continue where the previous one ends: the sequencer takes a run as one segment.
template <class Group>
class Runs {
 public:
  HEADRACE_HD Runs(const Group& group, const View& view, Window& window)
      : group_(group), view_(view), window_(window) {}

  /// Number of packets before the window.
  [[nodiscard]] HEADRACE_HD std::uint64_t taken() const { return taken_; }
  /// Every thread: moves the window past packets that have been taken.
  HEADRACE_HD void advance(std::uint32_t packets) { taken_ += packets; }

  [[nodiscard]] HEADRACE_HD const Parsed& packet(std::uint32_t i) const {
    return view_.parsed[(taken_ + i) & view_.packet_mask];
  }

  /// Every thread: finds where runs begin, and how many payload bytes precede each packet.
  HEADRACE_HD void find(std::uint32_t count) {
    std::uint32_t bytes_before = 0;
    std::uint32_t runs_before = 0;
    for (std::uint32_t base = 0; base < count; base += group_.size()) {
      const std::uint32_t i = base + group_.rank();
      std::uint32_t begins = 0;
      std::uint32_t bytes = 0;
      if (i < count) {
        begins = i == 0 || !continues(packet(i - 1), packet(i)) ? 1 : 0;
        bytes = packet(i).result == ParseResult::ok ? packet(i).headers.payload_length : 0;
      }
      std::uint32_t bytes_here = 0;
      std::uint32_t runs_here = 0;
      const std::uint32_t start = bytes_before + group_.sum_before(bytes, bytes_here);
      const std::uint32_t run = runs_before + group_.sum_before(begins, runs_here) + begins - 1;
      if (i < count) {
        window_.start[i] = start;
        window_.run_of[i] = static_cast<std::uint16_t>(run);
        if (begins != 0) window_.first[run] = static_cast<std::uint16_t>(i);
      }
      bytes_before += bytes_here;
      runs_before += runs_here;
    }
    if (group_.rank() == 0) {
      window_.start[count] = bytes_before;
      window_.first[runs_before] = static_cast<std::uint16_t>(count);
      window_.run_count = runs_before;
    }
    group_.sync();
  }

  /// Calls `emit(Part, PartPlace)` for the accepted bytes of packet `i`, cut at the ends of frames. Requires: pieces
  /// name slots instead of streams.
  template <class Emit>
  HEADRACE_HD void for_each_part_of(std::uint32_t i, Emit emit) const {
    const std::uint32_t run = window_.run_of[i];
    if (window_.pieces[run] == window_.pieces[run + 1]) return;
    const std::uint32_t first = window_.first[run];
    const auto payload_of = [&](std::uint32_t which) {
      return packet(which).packet.ring_offset + packet(which).headers.payload_offset;
    };
    const std::uint64_t whole = payload_of(first);
    const std::byte* const own = view_.ring + payload_of(i);
    const std::uint64_t begin = window_.start[i] - window_.start[first];
    const std::uint64_t end = window_.start[i + 1] - window_.start[first];
    for (std::uint32_t p = window_.pieces[run]; p < window_.pieces[run + 1]; ++p) {
      const Piece& piece = view_.scratch->pieces[p];
      if (piece.stream == kNoSlot) continue;
      const Attached& to = view_.attached[piece.stream];
      const std::uint64_t skip = piece.ring_offset - whole;  // as if the run were one packet
      const std::uint64_t last = lesser(skip + piece.length, end);
      for (std::uint64_t at = skip < begin ? begin : skip; at < last;) {
        const std::uint64_t offset = piece.stream_offset + (at - skip);
        const std::uint64_t number = offset / to.frame_bytes;
        const std::uint64_t within = offset - number * to.frame_bytes;
        const auto place = static_cast<std::uint32_t>(number % to.frame_count);
        const auto bytes = static_cast<std::uint32_t>(lesser(last - at, to.frame_bytes - within));
        emit(Part(to.frames + place * to.stride + within, own + (at - begin), bytes),
             PartPlace{number, piece.stream * view_.places_per_slot + place});
        at += bytes;
      }
    }
  }

 private:
  const Group& group_;
  const View& view_;
  Window& window_;
  std::uint64_t taken_ = 0;
};

}  // namespace headrace::ingest::resident
