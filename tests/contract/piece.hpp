#pragma once

#include <cstddef>

namespace headrace::testing {

/// A copy of a test: `bytes` from the offset `from` of a source to the offset `to` of a target.
struct Piece {
  std::size_t to;
  std::size_t from;
  std::size_t bytes;
};

}  // namespace headrace::testing
