#pragma once

#include <cstdint>
#include <utility>

#include "fetch/flags.hpp"

/// A thread's rows of a tile.
namespace headrace::fetch {

/// A tile as one thread has it: `Rows` rows one after the other, so that their bits in a bitmap are too.
template <class Group, std::uint32_t Rows>
struct Tile {
  std::int64_t first = 0;   ///< The thread's first row, in the fragment.
  std::uint32_t count = 0;  ///< Rows that there are.
  Flags<Rows> pass;         ///< Rows that are still in the scan.

  HEADRACE_HD Tile(const Group& group, std::int64_t tile_first, std::int64_t fragment_rows) noexcept
      : first(tile_first + std::int64_t{group.rank()} * Rows) {
    const std::int64_t left = fragment_rows - first;
    count = left >= Rows ? Rows : left <= 0 ? 0 : static_cast<std::uint32_t>(left);
    pass.set_first(count);
  }

  /// Calls body(i) for the thread's rows; where they are few, for those that are not there or do not pass too: without
  /// a branch for each, what they compute overlaps.
  template <class Body>
  HEADRACE_HD void each(const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      each_constant<Rows>(body);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
    }
  }
  /// Calls body(i) for the rows of `wanted`, a short body: there is one without branches for when all are.
  template <class Body>
  HEADRACE_HD void each_of(const BothFlags<Rows>& wanted, const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      if (wanted.all()) return each(body);
    }
    each([&](std::uint32_t i) {
      if (wanted[i]) body(i);
    });
  }
  /// Calls body(i) for the rows of `wanted`, a long body: there is one of it, whose `i` is no constant. What it does
  /// with a row's registers it does with a copy of them, so that they stay registers elsewhere.
  template <class Body>
  HEADRACE_HD void each_in_turn(const BothFlags<Rows>& wanted, const Body& body) const noexcept {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t i = 0; i < (Flags<Rows>::kSmall ? Rows : count); ++i) {
      if (wanted[i]) body(i);
    }
  }
  /// Calls body(i) for the rows that pass.
  template <class Body>
  HEADRACE_HD void each_passing(const Body& body) const noexcept {
    each([&](std::uint32_t i) {
      if (pass[i]) body(i);
    });
  }
};

}  // namespace headrace::fetch
