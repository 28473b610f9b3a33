#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "headrace/device/group.hpp"

namespace headrace::grid {

/// Without branches: compilers would move the computation of a value into them, and then not vectorise the row.

/// The place of a wall that no cell lies at.
inline constexpr std::int32_t kNoWall = INT32_MIN;

/// The place of the low wall of an axis, whose bit says whether it conducts.
[[nodiscard]] HEADRACE_HD constexpr std::int32_t low_wall(std::uint32_t conducting, unsigned axis) noexcept {
  return (conducting >> axis & 1U) != 0 ? 0 : kNoWall;
}

/// 1 if a cell lies at the wall of an axis, by default the low one, else 0.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t at_wall(std::int32_t place, std::int32_t wall = 0) noexcept {
  return static_cast<std::uint32_t>(place == wall);
}

/// 0 if `wall` is 1, `value` if it is 0.
template <class V>
[[nodiscard]] HEADRACE_HD V unless_wall(std::uint32_t wall, V value) noexcept {
  using Bits = std::conditional_t<sizeof(V) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  const Bits kept = static_cast<Bits>(wall) - 1;
  return std::bit_cast<V>(std::bit_cast<Bits>(value) & kept);
}

}  // namespace headrace::grid
