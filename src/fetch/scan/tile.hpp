#pragma once

#include <cstdint>

#include "fetch/program/rows.hpp"
#include "fetch/scan/flags.hpp"

/// A thread's rows of a tile.
namespace headrace::fetch {

/// Position of a tile. 32 bits can count the rows of a scan.
struct TilePlace {
  std::uint32_t fragment = 0;
  std::uint32_t first = 0;  ///< First row, in the fragment.
  std::uint32_t rows = 0;   ///< The rows of the fragment.
};

/// One thread's part of a tile. A thread with few rows has them in runs of four: long enough that a run's bits are in
/// one byte of a bitmap and its values load in 16 bytes, short enough that a team's simultaneous loads are close
/// together. A thread with many rows has one run.
template <class Group, std::uint32_t Rows>
struct Tile {
  static constexpr std::uint32_t kRun = Flags<Rows>::kSmall ? 4 : Rows;
  static constexpr std::uint32_t kRuns = Rows / kRun;
  static constexpr std::uint32_t kRunStep = kTileRows / kRuns;  ///< Distance in rows between two runs of a thread.
  static_assert(kRuns * kRun == Rows && kRuns * kRunStep == kTileRows);

  std::uint32_t first = 0;  ///< The thread's first row, in the fragment.
  std::uint32_t count = 0;  ///< Rows of the tile from `first` on.
  Flags<Rows> pass;         ///< Rows that still pass.

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

  /// Number of existing rows in a run.
  [[nodiscard]] HEADRACE_HD std::uint32_t rows_of(std::uint32_t run) const noexcept {
    const std::uint32_t before = run * kRunStep;
    return count >= before + kRun ? kRun : count <= before ? 0 : count - before;
  }

  /// Calls body(i) for the thread's rows. If rows are few, includes rows that do not exist or do not pass: without
  /// branches, the computations of the rows overlap.
  template <class Body>
  HEADRACE_HD void each(const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      each_constant<Rows>(body);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
    }
  }
  /// Calls body(i) for the rows of `wanted`. For short bodies: it is instantiated a second time, without branches, for
  /// the case that all rows are wanted.
  template <class Body>
  HEADRACE_HD void each_of(const BothFlags<Rows>& wanted, const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      if (wanted.all()) return each(body);
    }
    each([&](std::uint32_t i) {
      if (wanted[i]) body(i);
    });
  }
  /// Calls body(i) for the rows of `wanted`. For long bodies: there is one instance, and `i` is not a constant. The
  /// body must use copies of a row's registers, so that the originals stay in registers elsewhere.
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
