#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/device/ring.hpp"

namespace headrace::ingest {

/// The producer's side of a ring, used for a burst at a time: begin(), fill slot(0), slot(1), ..., publish(). Slots
/// that were not published are used for the next burst.
class Slots {
 public:
  /// Throws UsageError for a ring in memory that the host cannot write.
  Slots(Ring& ring, std::string_view source);

  /// Begins a burst. Returns how many slots are free, at most `most`.
  [[nodiscard]] std::size_t begin(std::size_t most) noexcept {
    first_ = ring_->published();
    return static_cast<std::size_t>(std::min<std::uint64_t>(most, ring_->slot_count() - (first_ - ring_->released())));
  }
  [[nodiscard]] std::span<std::byte> slot(std::size_t index) const noexcept {
    return {ring_->slot(first_ + index), ring_->slot_bytes()};
  }
  [[nodiscard]] std::uint64_t ring_offset(std::size_t index) const noexcept {
    return static_cast<std::uint64_t>(ring_->slot(first_ + index) - ring_->buffer().data());
  }
  void publish(std::size_t count) noexcept { ring_->publish(first_ + count); }

  [[nodiscard]] std::size_t slot_bytes() const noexcept { return ring_->slot_bytes(); }
  [[nodiscard]] std::size_t slot_count() const noexcept { return ring_->slot_count(); }
  /// Position of the slot since the ring's start.
  [[nodiscard]] std::uint64_t position(std::size_t index) const noexcept { return first_ + index; }

 private:
  Ring* ring_;
  std::uint64_t first_ = 0;
};

}  // namespace headrace::ingest
