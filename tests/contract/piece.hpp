#pragma once

#include <cstddef>

namespace headrace::testing {

/// A copy: `bytes` from offset `from` of a source to offset `to` of a target.
struct Piece {
  std::size_t to;
  std::size_t from;
  std::size_t bytes;
};

}  // namespace headrace::testing
