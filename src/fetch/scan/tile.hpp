#pragma once

#include <cstdint>

#include "fetch/program/rows.hpp"
#include "fetch/scan/flags.hpp"

/// A thread's rows of a tile.
namespace headrace::fetch {

/// Where a tile lies. A scan has no more rows than 32 bits count.
struct TilePlace {
  std::uint32_t fragment = 0;
  std::uint32_t first = 0;  ///< Row of the fragment.
  std::uint32_t rows = 0;   ///< The rows of the fragment.
};

/// A tile as one thread has it. Where rows are few, they are runs of four: so long that a run's bits are in one byte of
/// a bitmap and its values come by loads of 16 bytes, so short that what a team loads at once is close together. Where
/// they are many, they are one run.
template <class Group, std::uint32_t Rows>
struct Tile {
  static constexpr std::uint32_t kRun = Flags<Rows>::kSmall ? 4 : Rows;
  static constexpr std::uint32_t kRuns = Rows / kRun;
  static constexpr std::uint32_t kRunStep = kTileRows / kRuns;  ///< Rows from one run of the thread to its next.
  static_assert(kRuns * kRun == Rows && kRuns * kRunStep == kTileRows);

  std::uint32_t first = 0;  ///< The thread's first row, in the fragment.
  std::uint32_t count = 0;  ///< Rows of the tile from that one on.
  Flags<Rows> pass;         ///< Rows that are still in the scan.

  HEADRACE_HD Tile(const Group& group, const TilePlace& place) noexcept
      : first(place.first + group.rank() * kRun),
        count(place.rows <= first ? 0 : lesser(place.rows - first, kTileRows)) {
    if constexpr (Flags<Rows>::kSmall) {
      pass.set_first(Rows);
      if (count == kTileRows) return;
      std::uint32_t there = 0;
      each_constant<kRuns>([&](std::uint32_t run) { there |= ((1U << rows_of(run)) - 1) << (run * kRun); });
      pass.set_bits(there);
    } else {
      pass.set_first(count);
    }
  }

  /// How many rows of a run there are.
  [[nodiscard]] HEADRACE_HD std::uint32_t rows_of(std::uint32_t run) const noexcept {
    const std::uint32_t before = run * kRunStep;
    return count >= before + kRun ? kRun : count <= before ? 0 : count - before;
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
