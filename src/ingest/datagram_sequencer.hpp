#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/piece.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "ingest/datagram_state.hpp"

namespace headrace::ingest {

/// The output of a DatagramSequencer: arrays of the caller, which empties them by setting the counts to 0. Several
/// sequencers may share them; each names its stream.
struct DatagramOutput {
  Piece* pieces = nullptr;
  ClosedFrame* frames = nullptr;
  std::uint32_t pieces_max = 0;
  std::uint32_t frames_max = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t frame_count = 0;
  std::uint32_t stream = 0;  ///< The stream of new pieces and frames.
};

/// The result for a datagram.
enum class Taken : std::uint8_t {
  done,     ///< It was given its place, or dropped and counted.
  suspect,  ///< Its number is far from all others. It stays as suspect(), in its slot, until another datagram confirms
            ///< or refutes it. An earlier suspect has been dropped.
  room,     ///< The output is full: pass the datagram again once the output is empty.
  space,    ///< Its frame has no space: pass the datagram again after set_limit().
  restart   ///< It confirms suspect(): the sender has restarted with the two. They belong to another stream.
};

/// Puts the numbered datagrams of one sender at their places in any order of arrival: a datagram's number is its place.
/// Frames are closed in order: when every datagram is there, when they are old, or when a datagram comes for a frame
/// beyond the window. A frame that is closed for its age while the sender pauses is cut after its last datagram, and
/// the next frame continues from there, up to the end of the same frame_packets. This is a short-lived object over
/// lasting state, used by one thread at a time, on the host or a device. It never allocates, waits or fails.
class DatagramSequencer {
 public:
  /// @param ring  where ring offsets count from.
  /// @param now   nanoseconds of a clock that never goes back.
  HEADRACE_HD DatagramSequencer(const DatagramView& view, const std::byte* ring, DatagramOutput& output,
                                std::uint64_t now)
      : view_(view), shared_(*view.shared), ring_(ring), output_(output), now_(now) {}

  /// Checks that a datagram of this length has a number and a place: `ok`, `no_number`, `too_long` or `no_place`.
  [[nodiscard]] HEADRACE_HD static ParseResult fit(const DatagramConfig& config, const std::byte* datagram,
                                                   std::uint32_t length) {
    if (length < config.header()) return ParseResult::no_number;
    if (length - config.header() > config.payload_bytes) return ParseResult::too_long;
    if (config.part_width == 0) return ParseResult::ok;
    const std::uint64_t part = part_of(config, datagram);
    return part % config.payload_bytes == 0 && part < config.group_bytes ? ParseResult::ok : ParseResult::no_place;
  }

  /// Takes the datagram of `length` bytes at ring offset `at`, which fits. Drops it without space unless may_wait.
  [[nodiscard]] HEADRACE_HD Taken take(std::uint64_t at, std::uint32_t length, bool may_wait) {
    const DatagramConfig& config = shared_.config;
    const std::uint64_t number = place_of(config, ring_ + at);
    if (!shared_.started) start(number);
    const std::int64_t distance = distance_of(number, shared_.highest);
    if (distance > static_cast<std::int64_t>(config.forward_packets)) return doubt(at, length, number, false);
    const std::int64_t position = static_cast<std::int64_t>(shared_.highest_at) + distance;
    const bool late = position < static_cast<std::int64_t>(base_at());
    if (late || has_come(static_cast<std::uint64_t>(position))) {
      const bool far = distance < -static_cast<std::int64_t>(config.backward_packets);
      if (far && !is_before_gap(number)) return doubt(at, length, number, true);
      ++(late ? shared_.counters.late : shared_.counters.duplicates);
      return Taken::done;
    }
    const Piece piece{at + config.header(), 0, length - config.header(), output_.stream};
    return place(static_cast<std::uint64_t>(position), piece, distance, may_wait);
  }

  [[nodiscard]] HEADRACE_HD const DatagramSuspect& suspect() const { return shared_.suspect; }
  /// Drops a suspect that nothing has confirmed; its slot is free.
  HEADRACE_HD void drop_suspect() {
    if (!shared_.suspect.valid) return;
    ++(shared_.suspect.behind ? shared_.counters.late : shared_.counters.far);
    shared_.suspect.valid = false;
  }

  /// Says that frames below `frame` have space, and that the presence bits of earlier frames in the same places are no
  /// longer needed. The limit never decreases.
  HEADRACE_HD void set_limit(std::uint64_t frame) { shared_.frame_limit = greater(shared_.frame_limit, frame); }

  /// Closes frames that are old, and those before them. Frames that the output has no room for stay open.
  HEADRACE_HD void tick() {
    if (shared_.suspect.valid && now_ - shared_.suspect.came_at >= shared_.config.timeout) drop_suspect();
    std::uint64_t until = shared_.base;
    for (std::uint64_t frame = shared_.base; frame < shared_.base + shared_.config.window_frames; ++frame) {
      if (frame_at(frame).present > 0 && due(frame) <= now_) until = frame + 1;
    }
    while (shared_.base < until && has_room()) {
      ++shared_.counters.timeouts;
      close(known_packets(), false);
    }
    close_complete();
  }

  /// When tick() has something to do; the largest number if no frame is open.
  [[nodiscard]] HEADRACE_HD std::uint64_t next_deadline() const {
    std::uint64_t deadline = ~std::uint64_t{0};
    if (shared_.suspect.valid) deadline = shared_.suspect.came_at + shared_.config.timeout;
    for (std::uint64_t frame = shared_.base; frame < shared_.base + shared_.config.window_frames; ++frame) {
      if (frame_at(frame).present > 0) deadline = lesser(deadline, due(frame));
    }
    return deadline;
  }

  /// Ends the stream: closes every frame that has datagrams, and cuts the last one after its last byte. False if the
  /// output has no room for all.
  [[nodiscard]] HEADRACE_HD bool finish() {
    drop_suspect();
    while (base_at() < shared_.end && has_room()) close(known_packets(), shared_.end - base_at() <= packets_of_base());
    return base_at() >= shared_.end;
  }

  /// Bytes of the stream so far: up to the last byte that came, or to the end of a closed frame beyond it.
  [[nodiscard]] HEADRACE_HD std::uint64_t stream_bytes() const {
    const std::uint64_t payload = shared_.config.payload_bytes;
    if (shared_.end < base_at() || shared_.end == 0) return base_at() * payload;
    return (shared_.end - 1) * payload + shared_.last_bytes;
  }

 private:
  [[nodiscard]] HEADRACE_HD static std::uint64_t part_of(const DatagramConfig& config, const std::byte* datagram) {
    return load_number(datagram + config.part_offset, config.part_width, config.big_endian);
  }
  /// A datagram's place in the sender's stream, in units of payload_bytes.
  [[nodiscard]] HEADRACE_HD static std::uint64_t place_of(const DatagramConfig& config, const std::byte* datagram) {
    const std::uint64_t number = load_number(datagram + config.number_offset, config.number_width, config.big_endian);
    if (config.part_width == 0) return number;
    return number * config.group_packets() + part_of(config, datagram) / config.payload_bytes;
  }
  [[nodiscard]] HEADRACE_HD DatagramFrame& frame_at(std::uint64_t frame) const {
    return view_.frames[frame % shared_.config.window_frames];
  }
  [[nodiscard]] HEADRACE_HD bool has_room() const { return output_.frame_count < output_.frames_max; }

  /// The position of the first place in an open frame.
  [[nodiscard]] HEADRACE_HD std::uint64_t base_at() const {
    return shared_.base_cut * shared_.config.frame_packets + shared_.base_slot;
  }
  /// Places of the oldest open frame.
  [[nodiscard]] HEADRACE_HD std::uint32_t packets_of_base() const {
    return shared_.config.frame_packets - shared_.base_slot;
  }
  /// Places of the oldest open frame up to the stream's last datagram; all of them if that lies beyond the frame.
  [[nodiscard]] HEADRACE_HD std::uint32_t known_packets() const {
    const std::uint64_t known = greater(shared_.end, base_at()) - base_at();
    return static_cast<std::uint32_t>(lesser(known, packets_of_base()));
  }
  /// The open frame of a position, and its place in that frame.
  HEADRACE_HD void find(std::uint64_t position, std::uint64_t& frame, std::uint64_t& slot) const {
    const std::uint64_t ahead = position / shared_.config.frame_packets - shared_.base_cut;
    frame = shared_.base + ahead;
    slot = position % shared_.config.frame_packets - (ahead == 0 ? shared_.base_slot : 0);
  }
  [[nodiscard]] HEADRACE_HD bool has_come(std::uint64_t position) const {
    std::uint64_t frame = 0;
    std::uint64_t slot = 0;
    find(position, frame, slot);
    if (frame >= shared_.base + shared_.config.window_frames || frame_at(frame).present == 0) return false;
    return (view_.presence_of(frame)[slot / 64] >> (slot % 64) & 1) != 0;
  }

  /// The time at which an open frame is old enough to be closed.
  [[nodiscard]] HEADRACE_HD std::uint64_t due(std::uint64_t frame) const {
    const DatagramFrame& open = frame_at(frame);
    const std::uint64_t old = open.first_at + shared_.config.timeout;
    const std::uint64_t begin =
        greater(base_at(), (shared_.base_cut + frame - shared_.base) * shared_.config.frame_packets);
    const bool gaps = open.present < shared_.end - begin && open.present < places_of(frame);
    if (!gaps) return old;
    return greater(old, lesser(shared_.gap_at + shared_.config.timeout, old + shared_.config.timeout));
  }
  [[nodiscard]] HEADRACE_HD std::uint32_t places_of(std::uint64_t frame) const {
    return frame == shared_.base ? packets_of_base() : shared_.config.frame_packets;
  }

  [[nodiscard]] HEADRACE_HD Taken place(std::uint64_t position, Piece piece, std::int64_t distance, bool may_wait) {
    const DatagramConfig& config = shared_.config;
    DatagramCounters& counters = shared_.counters;
    std::uint64_t frame = 0;
    std::uint64_t slot = 0;
    find(position, frame, slot);
    while (frame - shared_.base >= config.window_frames && shared_.base < shared_.frame_limit) {
      if (!has_room()) return Taken::room;
      close(packets_of_base(), false);
    }
    if (frame >= shared_.frame_limit) {
      if (may_wait) return Taken::space;
      ++counters.no_space;
      note_number(distance);
      return Taken::done;
    }
    find(position, frame, slot);
    if (output_.piece_count == output_.pieces_max || !has_room()) return Taken::room;
    drop_suspect();
    add(frame, slot, piece.length);
    piece.stream_offset = frame * config.frame_bytes() + slot * config.payload_bytes;
    output_.pieces[output_.piece_count++] = piece;
    if (distance < 0) ++counters.reordered;
    note_number(distance);
    if (position >= shared_.end) {
      shared_.end = position + 1;
      shared_.last_bytes = piece.length;
    }
    close_complete();
    return Taken::done;
  }

  /// Notes a datagram in an open frame.
  HEADRACE_HD void add(std::uint64_t frame, std::uint64_t slot, std::uint32_t payload) {
    std::uint64_t* const presence = view_.presence_of(frame);
    DatagramFrame& open = frame_at(frame);
    if (open.present == 0) {
      open.first_at = now_;
      for (std::uint32_t w = 0; w < view_.presence_words; ++w) presence[w] = 0;
    }
    presence[slot / 64] |= std::uint64_t{1} << (slot % 64);
    view_.lengths_of(frame)[slot] = static_cast<std::uint16_t>(payload);
    ++open.present;
    open.bytes += payload;
    ++shared_.counters.accepted;
    shared_.counters.bytes += payload;
    if (payload < shared_.config.payload_bytes) ++shared_.counters.short_payloads;
  }

  /// True if later datagrams, beyond the last long gap, may have overtaken this number.
  [[nodiscard]] HEADRACE_HD bool is_before_gap(std::uint64_t number) const {
    const std::int64_t distance = distance_of(number, shared_.gap_from);
    const auto near = static_cast<std::int64_t>(shared_.config.backward_packets);
    return shared_.has_gap && distance <= near && distance >= -near;
  }

  HEADRACE_HD void note_number(std::int64_t distance) {
    if (distance <= 0) return;
    if (distance > 1) shared_.gap_at = now_;
    if (distance > static_cast<std::int64_t>(shared_.config.backward_packets)) {
      shared_.gap_from = shared_.highest;
      shared_.has_gap = true;
    }
    shared_.highest += static_cast<std::uint64_t>(distance);
    shared_.highest_at += static_cast<std::uint64_t>(distance);
  }

  HEADRACE_HD void start(std::uint64_t number) {
    shared_.started = true;
    shared_.highest = number;
    shared_.highest_at = number % shared_.config.frame_packets;
    if (shared_.highest_at != 0) shared_.gap_at = now_;
  }

  /// The distance from one number to another, the shorter way around.
  [[nodiscard]] HEADRACE_HD std::int64_t distance_of(std::uint64_t number, std::uint64_t from) const {
    const std::uint32_t unused = (8 - shared_.config.place_width()) % 8 * 8;  // bits of the 64
    return static_cast<std::int64_t>((number - from) << unused) >> unused;
  }

  /// Two numbers near each other and far from all others mean that the sender has restarted (RFC 3550 A.1). A single
  /// one is a mistake, a forgery, or late.
  [[nodiscard]] HEADRACE_HD Taken doubt(std::uint64_t at, std::uint32_t length, std::uint64_t number, bool behind) {
    DatagramSuspect& suspect = shared_.suspect;
    if (suspect.valid) {
      const std::int64_t distance = distance_of(number, suspect.number);
      const auto near = static_cast<std::int64_t>(shared_.config.backward_packets);
      if (distance != 0 && distance <= near && distance >= -near) return Taken::restart;
      drop_suspect();
    }
    suspect = {at, number, now_, length, behind, true};
    return Taken::suspect;
  }

  HEADRACE_HD void close_complete() {
    while (frame_at(shared_.base).present == packets_of_base() && has_room()) close(packets_of_base(), false);
  }

  /// Closes the oldest frame, which has `packets` places. `ends`: the stream ends in this frame, which is cut after its
  /// last byte. Requires: has_room().
  HEADRACE_HD void close(std::uint32_t packets, bool ends) {
    const DatagramConfig& config = shared_.config;
    DatagramFrame& open = frame_at(shared_.base);
    if (open.present == 0) {
      std::uint64_t* const presence = view_.presence_of(shared_.base);
      for (std::uint32_t w = 0; w < view_.presence_words; ++w) presence[w] = 0;
    }
    const std::uint64_t bytes =
        std::uint64_t{packets} * config.payload_bytes - (ends ? config.payload_bytes - shared_.last_bytes : 0);
    const ClosedFrame closed{shared_.base, open.bytes, bytes, open.present, packets, output_.stream};
    output_.frames[output_.frame_count++] = closed;
    ++shared_.counters.frames;
    shared_.counters.frames_complete += closed.complete() ? 1 : 0;
    shared_.counters.missing += packets - open.present;
    open = DatagramFrame{};
    ++shared_.base;
    shared_.base_slot += packets;
    if (shared_.base_slot == config.frame_packets) {
      shared_.base_slot = 0;
      ++shared_.base_cut;
    }
  }

  DatagramView view_;
  DatagramShared& shared_;
  const std::byte* ring_;
  DatagramOutput& output_;
  std::uint64_t now_;
};

}  // namespace headrace::ingest
