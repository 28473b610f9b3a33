#pragma once

#include <algorithm>
#include <cstdint>

namespace headrace::grid {

/// A sum of whole numbers, high * 2^32 + low with low < 2^32.
struct WholeSum {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  void add(const WholeSum& more) noexcept {
    low += more.low;
    high += more.high + (low >> 32);
    low &= 0xFFFFFFFF;
  }
};

/// Steps whose changes are added up in the same units. While they are done, those before them are read back.
inline constexpr std::uint64_t kStepsWatched = 32;

/// What a step has changed in a watched field: the bits of the largest absolute value, and the sum of squares.
struct StepChange {
  std::uint64_t largest = 0;
  WholeSum squares;
  void add(const StepChange& more) noexcept {
    largest = std::max(largest, more.largest);
    squares.add(more.squares);
  }
};

}  // namespace headrace::grid
