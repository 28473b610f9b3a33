#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "headrace/ingest/detail/wire.hpp"
#include "headrace/ingest/follow.hpp"

namespace headrace::ingest {

/// One direction of a followed connection: where its bytes belong, and what waits for others. Offsets count from the
/// first byte after SYN, or from the first segment where the capture lacks SYN, and do not wrap.
class FollowedDirection {
 public:
  using Bytes = std::vector<std::byte>;

  /// What became of a segment's payload.
  struct Taken {
    std::uint64_t fresh = 0;      ///< Bytes that are new.
    std::uint64_t duplicate = 0;  ///< Bytes that had come before.
    std::uint64_t late = 0;       ///< Those of the bytes whose gap had been given up.
    bool ahead = false;           ///< It lies behind a gap.
  };

  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] bool has_syn() const noexcept { return has_syn_; }
  [[nodiscard]] bool is_untouched() const noexcept { return next_ == 0 && held_.empty(); }
  /// The sequence number of offset 0.
  [[nodiscard]] std::uint32_t base() const noexcept { return base_; }
  /// Every byte before has come, or is given up.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// Bytes before were acknowledged by the receiver.
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::optional<std::uint64_t> finish() const noexcept { return finish_; }
  [[nodiscard]] bool finished() const noexcept { return finish_ == next_; }
  [[nodiscard]] bool has_gap() const noexcept { return !held_.empty(); }
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_bytes_; }
  /// The end of the gap at next(), where there is one.
  [[nodiscard]] std::uint64_t gap_end() const noexcept { return held_.begin()->first; }

  /// The stream begins at `sequence`. `by_syn`: surely; else a segment with payload that comes before may move it.
  void begin(std::uint32_t sequence, bool by_syn, bool has_payload) noexcept;
  /// The peer wants `sequence` next.
  void acknowledge(std::uint32_t sequence) noexcept;
  /// Payload of which `length` bytes were on the wire, and the first ones were captured. What comes in order is
  /// appended to `to`.
  Taken take(std::uint32_t sequence, std::span<const std::byte> payload, std::uint32_t length, Bytes& to);
  /// FIN: the stream ends at `sequence`. Of several, the first in the stream counts.
  void finish_at(std::uint32_t sequence) noexcept;
  /// Gives up the bytes up to `end`, of the gap at next(), and appends what follows to `to`.
  void give_up(std::uint64_t end, Bytes& to);
  /// Forgets what lies behind the gap; how many bytes.
  std::uint64_t drop_held() noexcept;

 private:
  struct Lost {
    std::uint64_t begin;
    std::uint64_t end;
  };

  [[nodiscard]] std::int64_t offset_of(std::uint32_t sequence) const noexcept {
    return static_cast<std::int64_t>(next_) + serial_distance(sequence, base_ + static_cast<std::uint32_t>(next_));
  }
  void extend(std::span<const std::byte> payload, Bytes& to);
  void join(Bytes& to);
  std::uint64_t hold(std::uint64_t begin, std::span<const std::byte> payload);
  [[nodiscard]] std::uint64_t lost_within(std::uint64_t begin, std::uint64_t end) const noexcept;

  bool known_ = false;
  bool has_syn_ = false;
  bool provisional_ = false;  ///< No payload has said where the stream begins.
  std::uint32_t base_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::optional<std::uint64_t> finish_;
  std::map<std::uint64_t, Bytes> held_;  ///< Segments behind the gap at next_, by offset; they do not overlap.
  std::uint64_t held_bytes_ = 0;
  std::deque<Lost> lost_;  ///< The gaps that were given up last.
};

}  // namespace headrace::ingest
