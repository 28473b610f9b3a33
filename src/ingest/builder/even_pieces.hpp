#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/ingest/detail/piece.hpp"

namespace headrace::ingest {

/// Pieces of one length, as far apart from each other in the ring as all others are, that follow each other in a
/// stream.
struct EvenPieces {
  Piece first{};
  std::uint64_t pitch = 0;  ///< From piece to piece in the ring; 0 where there is one.
  std::uint32_t count = 1;
};

/// The first of `pieces`, and those after it that go on like it and lie within a ring of so many bytes, as it does.
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
