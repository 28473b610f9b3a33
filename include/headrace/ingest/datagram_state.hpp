#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

/// What a DatagramSequencer keeps. Like that of a TcpSequencer it is one block of memory that holds no pointer.
namespace headrace::ingest {

/// How datagrams are numbered, and how they make frames. Times are in nanoseconds.
struct DatagramConfig {
  std::uint16_t port = 0;           ///< Of UDP, in packets with headers; 0: any.
  std::uint32_t raw_offset = 0;     ///< Where in a packet the datagram begins, where `raw`.
  bool raw = false;                 ///< Packets are not UDP: what lies behind raw_offset is the datagram.
  std::uint32_t number_offset = 0;  ///< Of the sequence number, from the datagram's first byte.
  std::uint32_t number_width = 4;   ///< Bytes of it, 1 to 8.
  bool big_endian = true;           ///< The most significant byte first.
  std::uint32_t header_bytes = 4;   ///< Of every datagram that do not go into the frame.
  std::uint32_t payload_bytes = 1;  ///< That go into the frame: its place is number times this.
  std::uint32_t frame_packets = 1;  ///< Datagrams that make a frame.
  std::uint32_t window_frames = 2;  ///< Frames that are open at the same time, at most; the window for reordering.
  /// From the first datagram of a frame to when it is closed with its gaps: longer than a whole frame takes to come,
  /// and than a machine may stand still.
  std::uint64_t timeout = 1'000'000'000;
  std::uint64_t jump_packets = 3000;  ///< A number further away counts only when the next one follows (RFC 3550 A.1).
};

/// Throws UsageError that says what is out of range.
void check(const DatagramConfig& config);

struct DatagramCounters {
  std::uint64_t packets = 0;
  std::uint64_t unparsed = 0;   ///< Packets whose headers were not understood, or not of UDP or of this port.
  std::uint64_t malformed = 0;  ///< Datagrams too short for their number, or with more payload than has place.
  std::uint64_t accepted = 0;
  std::uint64_t bytes = 0;
  std::uint64_t short_payloads = 0;  ///< Accepted ones with less payload than has place.
  std::uint64_t reordered = 0;       ///< Accepted ones with a number below one that came before.
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;  ///< Their frame was closed.
  /// That were not there when their frame was closed. What lies behind the highest number counts once a higher one
  /// comes.
  std::uint64_t missing = 0;
  std::uint64_t far = 0;       ///< Dropped for a number too far away.
  std::uint64_t restarts = 0;  ///< The sender has begun with other numbers.
  std::uint64_t no_space = 0;  ///< Dropped because their frame has none yet.
  std::uint64_t no_room = 0;   ///< Dropped because the output was full.
  std::uint64_t frames = 0;    ///< Closed.
  std::uint64_t frames_complete = 0;
  std::uint64_t timeouts = 0;  ///< Frames that were closed by it.
};

/// One frame of the window.
struct DatagramFrame {
  std::uint64_t first_at = 0;  ///< When its first datagram came; valid where present > 0.
  std::uint32_t present = 0;
};

struct DatagramShared {
  DatagramConfig config;
  DatagramCounters counters;
  std::uint64_t base = 0;         ///< The oldest frame that is not closed.
  std::uint64_t frame_limit = 0;  ///< Frames below have space.
  std::uint64_t origin = 0;       ///< The number of the first datagram of frame `origin_frame`, modulo 2^64.
  std::uint64_t origin_frame = 0;
  std::uint64_t highest = 0;    ///< Of the numbers that were accepted.
  std::uint64_t suspected = 0;  ///< The number that would confirm a jump.
  bool started = false;
  bool suspects = false;

  /// Datagrams of all frames up to the highest number; where `started`.
  [[nodiscard]] HEADRACE_HD std::uint64_t known_end() const {
    return origin_frame * config.frame_packets + (highest - origin) + 1;
  }
};

/// Where the state lies.
struct DatagramView {
  DatagramShared* shared = nullptr;
  DatagramFrame* frames = nullptr;    ///< Of frame f at f modulo window_frames.
  std::uint64_t* presence = nullptr;  ///< Of frame f at (f modulo presence_frames) * presence_words.
  std::uint32_t presence_words = 0;
  std::uint32_t presence_frames = 0;

  /// A bit for each datagram of the frame, the first in bit 0 of word 0. What it says of a closed frame stays until
  /// frame + presence_frames has space.
  [[nodiscard]] HEADRACE_HD std::uint64_t* presence_of(std::uint64_t frame) const {
    return presence + frame % presence_frames * presence_words;
  }
};

/// A frame that was closed. They are closed in order.
struct ClosedFrame {
  std::uint64_t frame = 0;
  std::uint32_t present = 0;  ///< Of its datagrams; DatagramView::presence_of() says which.
  std::uint32_t packets = 0;  ///< That it has: frame_packets, or fewer where the stream ends within it.
  [[nodiscard]] HEADRACE_HD bool complete() const { return present == packets; }
};

/// The bytes that the state takes. Presence is kept of `presence_frames` frames: those of the window, and those that
/// the consumer has not given back.
[[nodiscard]] std::size_t datagram_state_bytes(const DatagramConfig& config, std::uint32_t presence_frames);

/// The state in `memory` of that size, aligned to 64. Touches nothing.
[[nodiscard]] DatagramView datagram_view(void* memory, const DatagramConfig& config, std::uint32_t presence_frames);

/// Makes `memory`, which the host can write, the state before the first datagram. Throws UsageError where check(config)
/// does, or presence_frames is not more than window_frames: the sequencer could not catch up.
DatagramView make_datagram_state(void* memory, const DatagramConfig& config, std::uint32_t presence_frames);

}  // namespace headrace::ingest
