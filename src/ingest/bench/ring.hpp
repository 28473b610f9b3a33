#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/ingest/detail/piece.hpp"
#include "ingest/bench/build_bench.hpp"
#include "ingest/bench/parts.hpp"

namespace headrace::ingest {

/// A ring in pinned memory that is full of packets and read again and again, as an endless stream of their payloads.
class BenchRing {
 public:
  BenchRing(Device device, const RingCase& of)
      : header_bytes_(of.packets.header_bytes),
        slots_(slots_of(of.packets, of.ring_bytes)),
        lengths_(lengths_of(of.packets, slots_.count)),
        lap_bytes_(std::accumulate(lengths_.begin(), lengths_.end(), std::uint64_t{0})),
        memory_(device, MemoryKind::pinned, slots_.bytes()) {
    fill_randomly(memory_.data(), memory_.bytes(), of.packets.seed);
  }

  [[nodiscard]] const Buffer& memory() const noexcept { return memory_; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slots_.stride; }
  /// Packets gathered so far, and the bytes of their payloads.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t stream_offset() const noexcept { return stream_offset_; }

  struct Limits {
    std::uint64_t packets;
    std::uint64_t copied;      ///< Packets whose slots may be used again.
    std::uint64_t stream_end;  ///< No packet ends beyond this offset.
  };
  /// Replaces the contents of `pieces` by the next packets, as many as the limits allow.
  void gather(const Limits& limits, std::vector<Piece>& pieces) {
    pieces.clear();
    while (pieces.size() < limits.packets && position_ - limits.copied < slots_.count) {
      const std::uint32_t length = lengths_[slot_];
      if (stream_offset_ + length > limits.stream_end) break;
      pieces.push_back(
          {.ring_offset = slot_ * slots_.stride + header_bytes_, .stream_offset = stream_offset_, .length = length});
      stream_offset_ += length;
      ++position_;
      if (++slot_ == slots_.count) slot_ = 0;
    }
  }

  /// True if these are the bytes of the stream from `offset` on.
  [[nodiscard]] bool holds(const std::byte* bytes, std::uint64_t offset, std::size_t count) const {
    std::uint64_t at = offset / lap_bytes_ * lap_bytes_;  // stream offset of the packet in `slot`
    for (std::size_t slot = 0; at < offset + count; at += lengths_[slot], slot = (slot + 1) % slots_.count) {
      const std::uint64_t begin = std::max(at, offset);
      const std::uint64_t end = std::min(at + lengths_[slot], offset + count);
      if (begin >= end) continue;
      const std::byte* const payload = memory_.data() + slot * slots_.stride + header_bytes_;
      if (std::memcmp(bytes + (begin - offset), payload + (begin - at), end - begin) != 0) return false;
    }
    return true;
  }

 private:
  std::uint32_t header_bytes_;
  SlotSizes slots_;
  std::vector<std::uint32_t> lengths_;
  std::uint64_t lap_bytes_;
  Buffer memory_;
  std::uint64_t position_ = 0;
  std::size_t slot_ = 0;  ///< position_ modulo the ring's slots.
  std::uint64_t stream_offset_ = 0;
};

}  // namespace headrace::ingest
