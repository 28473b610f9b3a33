#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace {

/// A set of multiprocessors of a GPU, by the numbers that Group::multiprocessor() returns.
struct MultiprocessorSet {
  static constexpr std::uint32_t kMost = 256;  ///< Larger numbers are in no set.
  static constexpr std::uint32_t kWordBits = 32;

  std::uint32_t words[kMost / kWordBits];

  [[nodiscard]] HEADRACE_HD constexpr bool has(std::uint32_t which) const {
    return which < kMost && (words[which / kWordBits] >> (which % kWordBits) & 1) != 0;
  }
  constexpr void insert(std::uint32_t which) { words[which / kWordBits] |= 1U << (which % kWordBits); }
  constexpr void erase(std::uint32_t which) { words[which / kWordBits] &= ~(1U << (which % kWordBits)); }
};

}  // namespace headrace
