#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/ingest/detail/piece.hpp"

namespace headrace::ingest {

/// Pieces of one length that are evenly spaced in the ring and contiguous in a stream.
struct EvenPieces {
  Piece first{};
  std::uint64_t pitch = 0;  ///< Distance of the pieces in the ring; 0 if there is only one.
  std::uint32_t count = 1;
};

/// The first of `pieces` and those that continue it evenly within a ring of `ring_bytes`. The first lies within it.
[[nodiscard]] inline EvenPieces even_pieces(std::span<const Piece> pieces, std::size_t ring_bytes) noexcept {
  EvenPieces run{.first = pieces.front()};
  if (pieces.size() < 2 || pieces[1].ring_offset <= run.first.ring_offset) return run;
  const std::uint64_t pitch = pieces[1].ring_offset - run.first.ring_offset;
  const std::size_t end = ring_bytes - run.first.length;
  Piece next = run.first;
  for (; run.count < pieces.size(); ++run.count) {
    next.ring_offset += pitch;
    next.stream_offset += next.length;
    if (!(pieces[run.count] == next) || next.ring_offset > end) break;
  }
  if (run.count > 1) run.pitch = pitch;
  return run;
}

}  // namespace headrace::ingest
