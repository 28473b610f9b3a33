#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/datagram_state.hpp"
#include "headrace/ingest/packet.hpp"
#include "headrace/ingest/parse.hpp"
#include "headrace/ingest/piece.hpp"
#include "headrace/ingest/wire.hpp"

namespace headrace::ingest {

/// Where a DatagramSequencer puts what it has to say: arrays of the caller, who empties them by setting the counts to
/// 0.
struct DatagramOutput {
  Piece* pieces = nullptr;
  ClosedFrame* frames = nullptr;
  std::uint32_t pieces_max = 0;
  std::uint32_t frames_max = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t frame_count = 0;
};

/// Puts numbered datagrams of one sender at their places, whatever order they come in. Frames are closed in order: when
/// all of them is there, when the timeout is over, or when a datagram comes for a frame beyond the window. A
/// short-lived object over lasting state, used by one thread at a time, of the host or of a device; nothing it does
/// allocates, waits or fails.
class DatagramSequencer {
 public:
  /// @param ring  where ring offsets count from.
  /// @param now   nanoseconds of a clock that never goes back.
  HEADRACE_HD DatagramSequencer(const DatagramView& view, const std::byte* ring, DatagramOutput& output,
                                std::uint64_t now)
      : view_(view), shared_(*view.shared), ring_(ring), output_(output), now_(now) {}

  /// A packet; where the kernel merged several datagrams, each of them.
  HEADRACE_HD void receive(const Packet& packet, Layer layer) {
    ++shared_.counters.packets;
    std::uint64_t at = packet.ring_offset;
    std::uint32_t length = packet.length;
    if (!find_datagram(packet, layer, at, length)) {
      ++shared_.counters.unparsed;
      return;
    }
    const std::uint32_t each = packet.segment_bytes == 0 ? length : packet.segment_bytes;
    do {
      const auto part = static_cast<std::uint32_t>(lesser(each, length));
      take(at, part);
      at += part;
      length -= part;
    } while (length > 0);
  }

  /// Frames below `frame` have space, and their presence is not needed any more by who looked at earlier ones in the
  /// same place; never less than said before.
  HEADRACE_HD void set_limit(std::uint64_t frame) { shared_.frame_limit = greater(shared_.frame_limit, frame); }

  /// Closes frames whose time is over, and those before them. What the output has no room for stays open.
  HEADRACE_HD void tick() {
    std::uint64_t end = shared_.base;
    for (std::uint64_t frame = shared_.base; frame < shared_.base + shared_.config.window_frames; ++frame) {
      const DatagramFrame& open = frame_at(frame);
      if (open.present > 0 && now_ - open.first_at >= shared_.config.timeout) end = frame + 1;
    }
    while (shared_.base < end && has_room()) {
      if (frame_at(shared_.base).present < shared_.config.frame_packets) ++shared_.counters.timeouts;
      close(shared_.config.frame_packets);
    }
    close_complete();
  }

  /// When tick() has something to do; the largest number where no frame is open.
  [[nodiscard]] HEADRACE_HD std::uint64_t next_deadline() const {
    std::uint64_t deadline = ~std::uint64_t{0};
    for (std::uint32_t i = 0; i < shared_.config.window_frames; ++i) {
      const DatagramFrame& open = view_.frames[i];
      if (open.present > 0) deadline = lesser(deadline, open.first_at + shared_.config.timeout);
    }
    return deadline;
  }

  /// Nothing more will come: closes every frame of which something has, the last one behind the last datagram. False
  /// where the output has no room for all.
  [[nodiscard]] HEADRACE_HD bool finish() {
    const std::uint64_t end = open_end();
    while (shared_.base < end && has_room()) close(known_packets());
    return shared_.base >= end;
  }

 private:
  [[nodiscard]] HEADRACE_HD DatagramFrame& frame_at(std::uint64_t frame) const {
    return view_.frames[frame % shared_.config.window_frames];
  }
  [[nodiscard]] HEADRACE_HD bool has_room() const { return output_.frame_count < output_.frames_max; }

  [[nodiscard]] HEADRACE_HD bool find_datagram(const Packet& packet, Layer layer, std::uint64_t& at,
                                               std::uint32_t& length) const {
    const DatagramConfig& config = shared_.config;
    if (packet.truncated) return false;
    if (config.raw) {
      if (length < config.raw_offset) return false;
      at += config.raw_offset;
      length -= config.raw_offset;
      return true;
    }
    if (layer == Layer::payload) return true;
    Headers headers;
    if (parse_headers(ring_ + packet.ring_offset, packet, layer, headers) != ParseResult::ok) return false;
    at += headers.payload_offset;
    length = headers.payload_length;
    return headers.transport == Transport::udp && (config.port == 0 || config.port == headers.flow.local_port);
  }

  /// The first frame behind those of which something has come.
  [[nodiscard]] HEADRACE_HD std::uint64_t open_end() const {
    std::uint64_t end = shared_.base;
    for (std::uint64_t frame = shared_.base; frame < shared_.base + shared_.config.window_frames; ++frame) {
      if (frame_at(frame).present > 0) end = frame + 1;
    }
    return end;
  }

  /// Datagrams before all open frames.
  [[nodiscard]] HEADRACE_HD std::uint64_t closed_packets() const { return shared_.base * shared_.config.frame_packets; }
  /// Datagrams up to the highest number that belong to the oldest frame.
  [[nodiscard]] HEADRACE_HD std::uint32_t known_packets() const {
    const std::uint64_t known = greater(shared_.known_end(), closed_packets()) - closed_packets();
    return static_cast<std::uint32_t>(lesser(known, shared_.config.frame_packets));
  }
  /// The stream goes on: what closed frames lack behind the highest number will not come.
  HEADRACE_HD void count_passed() {
    shared_.counters.missing += greater(closed_packets(), shared_.known_end()) - shared_.known_end();
  }

  /// One datagram.
  HEADRACE_HD void take(std::uint64_t at, std::uint32_t length) {
    const DatagramConfig& config = shared_.config;
    if (length < config.header_bytes || length - config.header_bytes > config.payload_bytes) {
      ++shared_.counters.malformed;
      return;
    }
    std::uint64_t number = load_number(ring_ + at + config.number_offset, config.number_width, config.big_endian);
    if (!shared_.started) start(number);
    std::int64_t distance = distance_of(number);
    if (is_far(distance)) {
      if (!confirms_jump(number)) return;
      if (!restart(number)) return;
      distance = 0;
    }
    shared_.suspects = false;
    number = shared_.highest + static_cast<std::uint64_t>(distance);
    const auto position = static_cast<std::int64_t>(number - shared_.origin);
    if (position < 0) {
      ++shared_.counters.late;
      return;
    }
    place(static_cast<std::uint64_t>(position), {at + config.header_bytes, 0, length - config.header_bytes, 0},
          distance);
  }

  HEADRACE_HD void place(std::uint64_t position, Piece piece, std::int64_t distance) {
    const DatagramConfig& config = shared_.config;
    DatagramCounters& counters = shared_.counters;
    const std::uint64_t frame = shared_.origin_frame + position / config.frame_packets;
    const std::uint64_t slot = position % config.frame_packets;
    if (frame < shared_.base) {
      ++counters.late;
      return;
    }
    const bool open_window = close_to(window_of(frame));
    if (frame >= shared_.frame_limit) {
      ++counters.no_space;
      return;
    }
    if (output_.piece_count == output_.pieces_max || !has_room() || !open_window) {
      ++counters.no_room;
      return;
    }
    std::uint64_t* const presence = view_.presence_of(frame);
    DatagramFrame& open = frame_at(frame);
    if (open.present == 0) {
      open.first_at = now_;
      for (std::uint32_t w = 0; w < view_.presence_words; ++w) presence[w] = 0;
    }
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    if ((presence[slot / 64] & bit) != 0) {
      ++counters.duplicates;
      return;
    }
    presence[slot / 64] |= bit;
    ++open.present;
    piece.stream_offset = (frame * config.frame_packets + slot) * config.payload_bytes;
    output_.pieces[output_.piece_count++] = piece;
    ++counters.accepted;
    counters.bytes += piece.length;
    if (piece.length < config.payload_bytes) ++counters.short_payloads;
    if (distance < 0) ++counters.reordered;
    if (distance > 0) {
      count_passed();
      shared_.highest += static_cast<std::uint64_t>(distance);
    }
    close_complete();
  }

  HEADRACE_HD void start(std::uint64_t number) {
    shared_.started = true;
    shared_.highest = number;
    shared_.origin = number - number % shared_.config.frame_packets;
  }

  /// Of 64 bits, those that a number does not have.
  [[nodiscard]] HEADRACE_HD std::uint32_t unused_bits() const { return (8 - shared_.config.number_width) % 8 * 8; }

  /// How far a number is from the highest: the shorter way round.
  [[nodiscard]] HEADRACE_HD std::int64_t distance_of(std::uint64_t number) const {
    const std::uint32_t unused = unused_bits();
    return static_cast<std::int64_t>((number - shared_.highest) << unused) >> unused;
  }

  [[nodiscard]] HEADRACE_HD bool is_far(std::int64_t distance) const {
    const auto most = static_cast<std::int64_t>(shared_.config.jump_packets);
    return distance > most || distance < -most;
  }

  /// Two numbers in a row, far from all others: the sender has begun anew. One alone is a mistake or a forgery.
  [[nodiscard]] HEADRACE_HD bool confirms_jump(std::uint64_t number) {
    const bool confirmed = shared_.suspects && shared_.suspected == number;
    if (!confirmed) ++shared_.counters.far;
    const std::uint32_t unused = unused_bits();
    shared_.suspected = (number + 1) << unused >> unused;
    shared_.suspects = true;
    return confirmed;
  }

  /// Closes all frames; the next one begins with `number`. False where the output has no room for that.
  [[nodiscard]] HEADRACE_HD bool restart(std::uint64_t number) {
    if (!close_to(open_end())) {
      ++shared_.counters.no_room;
      return false;
    }
    count_passed();
    ++shared_.counters.restarts;
    start(number);
    shared_.origin_frame = shared_.base;
    return true;
  }

  /// Where the window begins that ends with `frame`. Frames without space are not left behind: they keep their turn.
  [[nodiscard]] HEADRACE_HD std::uint64_t window_of(std::uint64_t frame) const {
    const std::uint64_t window = shared_.config.window_frames;
    return frame < window ? 0 : lesser(frame - window + 1, shared_.frame_limit);
  }

  [[nodiscard]] HEADRACE_HD bool close_to(std::uint64_t end) {
    while (shared_.base < end && has_room()) close(shared_.config.frame_packets);
    return shared_.base >= end;
  }

  HEADRACE_HD void close_complete() {
    const std::uint32_t packets = shared_.config.frame_packets;
    while (frame_at(shared_.base).present == packets && has_room()) close(packets);
  }

  /// Closes the oldest frame, which has so many datagrams. Requires: has_room().
  HEADRACE_HD void close(std::uint32_t packets) {
    DatagramFrame& open = frame_at(shared_.base);
    if (open.present == 0) {
      std::uint64_t* const presence = view_.presence_of(shared_.base);
      for (std::uint32_t w = 0; w < view_.presence_words; ++w) presence[w] = 0;
    }
    const ClosedFrame closed{shared_.base, open.present, packets};
    output_.frames[output_.frame_count++] = closed;
    ++shared_.counters.frames;
    shared_.counters.frames_complete += closed.complete() ? 1 : 0;
    shared_.counters.missing += known_packets() - open.present;
    open = DatagramFrame{};
    ++shared_.base;
  }

  DatagramView view_;
  DatagramShared& shared_;
  const std::byte* ring_;
  DatagramOutput& output_;
  std::uint64_t now_;
};

}  // namespace headrace::ingest
