#pragma once

#include <cstdint>

namespace headrace::ingest {

/// Bytes of a receive ring and where they belong: what a sequencer accepts and a builder copies. Any length and any
/// alignment on both sides. Pieces of one burst never overlap where they go.
struct Piece {
  std::uint64_t ring_offset = 0;    ///< From the first byte of the ring's memory.
  std::uint64_t stream_offset = 0;  ///< From the first byte of the stream; never wraps.
  std::uint32_t length = 0;
  std::uint32_t stream = 0;  ///< Which stream, where a sequencer follows several.
  friend bool operator==(const Piece&, const Piece&) = default;
};

}  // namespace headrace::ingest
