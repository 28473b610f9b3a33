#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::measure {

/// The word at a position: no two positions of a seed, and no two seeds at a position, have the same word (Steele, Lea
/// and Flood, "Fast Splittable Pseudorandom Number Generators", 2014: the finalizer).
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t pattern(std::uint64_t seed, std::uint64_t position) noexcept {
  std::uint64_t word = seed * 0x9E3779B97F4A7C15U + position;
  word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9U;
  word = (word ^ (word >> 27U)) * 0x94D049BB133111EBU;
  return word ^ (word >> 31U);
}

}  // namespace headrace::measure
