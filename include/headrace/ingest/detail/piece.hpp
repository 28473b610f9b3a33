#pragma once

#include <cstdint>

namespace headrace::ingest {

/// Bytes of a receive ring and their place in a stream: a sequencer accepts them, and a builder copies them. Both sides
/// may have any length and alignment. The targets of pieces in one burst never overlap.
struct Piece {
  std::uint64_t ring_offset = 0;    ///< From the first byte of the ring's memory.
  std::uint64_t stream_offset = 0;  ///< From the first byte of the stream; never wraps.
  std::uint32_t length = 0;
  std::uint32_t stream = 0;  ///< Which stream, if a sequencer follows several.
  friend bool operator==(const Piece&, const Piece&) = default;
};

}  // namespace headrace::ingest
