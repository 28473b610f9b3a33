#pragma once

#include <algorithm>
#include <cstdint>

namespace headrace::grid {

/// A sum of integers, high * 2^32 + low with low < 2^32.
struct WholeSum {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  void add(const WholeSum& more) noexcept {
    low += more.low;
    high += more.high + (low >> 32);
    low &= 0xFFFFFFFF;
  }
};

/// Number of steps whose changes are added up in the same units. While they run, the sums of earlier steps are read
/// back.
inline constexpr std::uint64_t kStepsWatched = 32;

/// The change of a watched field in a step: the bits of the largest absolute value, and the sum of squares.
struct StepChange {
  std::uint64_t largest = 0;
  WholeSum squares;
  void add(const StepChange& more) noexcept {
    largest = std::max(largest, more.largest);
    squares.add(more.squares);
  }
};

}  // namespace headrace::grid
