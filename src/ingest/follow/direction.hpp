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

/// One direction of a followed connection: the places of its bytes, and the bytes that wait behind a gap. Offsets count
/// from the first byte after SYN, or from the first segment if the capture lacks SYN, and do not wrap.
class FollowedDirection {
 public:
  using Bytes = std::vector<std::byte>;

  /// The result for a segment's payload.
  struct Taken {
    std::uint64_t fresh = 0;      ///< New bytes.
    std::uint64_t duplicate = 0;  ///< Bytes below next(), or that had come before.
    std::uint64_t late = 0;       ///< Bytes of `duplicate` whose gap had been given up.
    bool ahead = false;           ///< The payload lies behind a gap.
  };

  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] bool has_syn() const noexcept { return has_syn_; }
  [[nodiscard]] bool is_untouched() const noexcept { return next_ == 0 && held_.empty(); }
  /// The sequence number of offset 0.
  [[nodiscard]] std::uint32_t base() const noexcept { return base_; }
  /// Every byte before this offset has come or been given up.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// The receiver has acknowledged all bytes before this offset.
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::optional<std::uint64_t> finish() const noexcept { return finish_; }
  [[nodiscard]] bool finished() const noexcept { return finish_ == next_; }
  [[nodiscard]] bool has_gap() const noexcept { return !held_.empty(); }
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_bytes_; }
  /// The end of the gap at next(). Requires: has_gap().
  [[nodiscard]] std::uint64_t gap_end() const noexcept { return held_.begin()->first; }

  /// Begins the stream at `sequence`. Unless `by_syn`, an earlier segment with payload may still move the beginning.
  void begin(std::uint32_t sequence, bool by_syn, bool has_payload) noexcept;
  /// Notes that the peer expects `sequence` next.
  void acknowledge(std::uint32_t sequence) noexcept;
  /// Takes a payload of `length` bytes on the wire, of which the capture has the first ones. Appends bytes that are in
  /// order to `to`.
  Taken take(std::uint32_t sequence, std::span<const std::byte> payload, std::uint32_t length, Bytes& to);
  /// FIN: the stream ends at `sequence`. If there are several, the lowest counts.
  void finish_at(std::uint32_t sequence) noexcept;
  /// Gives up the bytes of the gap at next() up to `end`, and appends the bytes that follow to `to`.
  void give_up(std::uint64_t end, Bytes& to);
  /// Drops the bytes behind the gap, and returns how many.
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
  bool provisional_ = false;  ///< No payload has confirmed where the stream begins.
  std::uint32_t base_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::optional<std::uint64_t> finish_;
  std::map<std::uint64_t, Bytes> held_;  ///< Segments behind the gap at next_, by offset; they do not overlap.
  std::uint64_t held_bytes_ = 0;
  std::deque<Lost> lost_;  ///< The gaps that were given up most recently.
};

}  // namespace headrace::ingest
