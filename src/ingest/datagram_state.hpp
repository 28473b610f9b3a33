#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/datagrams.hpp"

/// The state of a DatagramSequencer for one sender: one block of memory without pointers, as that of a TcpSequencer.
namespace headrace::ingest {

/// One frame of the window.
struct DatagramFrame {
  std::uint64_t first_at = 0;  ///< When its first datagram came; valid where present > 0.
  std::uint64_t bytes = 0;     ///< Payload bytes of the datagrams that came.
  std::uint32_t present = 0;
};

/// A datagram whose number is far from all others: a mistake, or the first datagram of a sender that has restarted.
struct DatagramSuspect {
  std::uint64_t at = 0;  ///< Its first byte in the ring.
  std::uint64_t number = 0;
  std::uint64_t came_at = 0;
  std::uint32_t length = 0;
  bool behind = false;  ///< If nothing confirms it, it counts as late.
  bool valid = false;
};

/// The shared part of the state. Positions count datagrams from the first place of the stream's first frame.
struct DatagramShared {
  DatagramConfig config;
  DatagramCounters counters;
  std::uint64_t base = 0;         ///< The oldest frame that is not closed.
  std::uint64_t base_cut = 0;     ///< The number of `base` if every frame had frame_packets places.
  std::uint32_t base_slot = 0;    ///< Where `base` begins in that frame: after a frame that was closed for its age.
  std::uint64_t frame_limit = 0;  ///< Frames below this have space.
  std::uint64_t highest = 0;      ///< The highest number seen, in the width of numbers.
  std::uint64_t highest_at = 0;   ///< Position of `highest`.
  std::uint64_t end = 0;          ///< The position after the last accepted datagram.
  std::uint32_t last_bytes = 0;   ///< Payload bytes of the last accepted datagram.
  std::uint64_t gap_at = 0;       ///< When a number was last skipped.
  std::uint64_t gap_from = 0;     ///< If `has_gap`: the last number before the last gap longer than backward_packets.
  DatagramSuspect suspect;
  bool started = false;
  bool has_gap = false;
};

/// Pointers into the state.
struct DatagramView {
  DatagramShared* shared = nullptr;
  DatagramFrame* frames = nullptr;    ///< Frame f is at f modulo window_frames.
  std::uint64_t* presence = nullptr;  ///< The bits of frame f are at (f modulo presence_frames) * presence_words.
  std::uint16_t* lengths = nullptr;   ///< The lengths of frame f are at (f modulo presence_frames) * frame_packets.
  std::uint32_t presence_words = 0;
  std::uint32_t presence_frames = 0;

  /// A bit for each datagram of the frame, the first in bit 0 of word 0. The bits of a closed frame stay until frame +
  /// presence_frames has space.
  [[nodiscard]] HEADRACE_HD std::uint64_t* presence_of(std::uint64_t frame) const {
    return presence + frame % presence_frames * presence_words;
  }
  /// Payload bytes of each datagram of the frame that came; they stay as long as its presence bits.
  [[nodiscard]] HEADRACE_HD std::uint16_t* lengths_of(std::uint64_t frame) const {
    return lengths + frame % presence_frames * shared->config.frame_packets;
  }
};

/// A closed frame. Frames are closed in order.
struct ClosedFrame {
  std::uint64_t frame = 0;
  std::uint64_t payload_bytes = 0;  ///< Payload bytes of the datagrams that came.
  std::uint64_t bytes = 0;          ///< Bytes of the stream, from the frame's first place on.
  std::uint32_t present = 0;        ///< Datagrams that came; DatagramView::presence_of() says which.
  std::uint32_t packets = 0;        ///< Places of the frame: frame_packets, or fewer if it was cut.
  std::uint32_t stream = 0;         ///< DatagramOutput::stream.
  [[nodiscard]] HEADRACE_HD bool complete() const { return present == packets; }
};

/// Bytes of the state. It has presence bits for `presence_frames` frames: those of the window, and those that the
/// consumer has not released.
[[nodiscard]] std::size_t datagram_state_bytes(const DatagramConfig& config, std::uint32_t presence_frames);

/// The state in `memory` of that size, aligned to 64. Does not access the memory.
[[nodiscard]] DatagramView datagram_view(void* memory, const DatagramConfig& config, std::uint32_t presence_frames);

/// Writes the state before the first datagram to `memory`, which the host can write. Throws UsageError if checked()
/// does, or if presence_frames is not more than window_frames: the sequencer could not catch up.
DatagramView make_datagram_state(void* memory, const DatagramConfig& config, std::uint32_t presence_frames);

}  // namespace headrace::ingest
