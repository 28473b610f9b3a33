#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/stencils/inlined.hpp"

/// The materials of three-dimensional FDTD as the stencil sees them. Every component of a cell has its own
/// coefficients, but few combinations of them occur, so a cell holds the index of its combination in a table. E and H
/// have separate indices, because most domains have only one permeability.
namespace headrace::grid {

/// The coefficients of E in a cell, along x, y and z: E <- ca E + cb (curl H).
template <class Value>
struct alignas(16) FdtdElectric {
  Value ca[3] = {};
  Value cb[3] = {};
};

/// The coefficients of H in a cell, along x, y and z: H <- H - db (curl E).
template <class Value>
struct alignas(16) FdtdMagnetic {
  Value db[3] = {};
};

/// The combinations that occur, and the runs of cells in rows that share one.
template <class Combination>
struct FdtdMedia {
  static constexpr std::int32_t kRun = 8;              ///< Cells of a row.
  static constexpr std::uint32_t kMixed = 0xFFFFFFFF;  ///< Not the index of a combination.

  const Combination* table;  // no initialisers, because FdtdTables has one of these in a union
  /// For every kRun cells of each row of the domain, x fastest, the index that all of them have, or kMixed. Null if the
  /// table has one combination, and on CUDA devices, which look up each cell.
  const std::uint32_t* runs;
};

/// The index of a combination as a value of a field: the same bits, which are copied but never computed with. Cells
/// outside the domain hold 0, which is the index of an ordinary combination.
template <class Value>
[[nodiscard]] constexpr Value combination_bits(std::uint32_t number) noexcept {
  using Bits = std::conditional_t<sizeof(Value) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  return std::bit_cast<Value>(static_cast<Bits>(number));
}
template <class Value>
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t combination_number(Value bits) noexcept {
  using Bits = std::conditional_t<sizeof(Value) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  return static_cast<std::uint32_t>(std::bit_cast<Bits>(bits));
}

/// A combination of the table. No kernel writes to it, so a GPU reads it through its read-only cache, 16 bytes at a
/// time.
template <class Combination>
[[nodiscard]] HEADRACE_HD HEADRACE_INLINED Combination combination_at(const Combination* table,
                                                                      std::uint32_t number) noexcept {
#if defined(__CUDA_ARCH__)
  struct Units {
    uint4 of[sizeof(Combination) / sizeof(uint4)];
  } units;
  const auto* from = reinterpret_cast<const uint4*>(table + number);
  for (std::size_t i = 0; i < sizeof(Combination) / sizeof(uint4); ++i) units.of[i] = __ldg(from + i);
  return std::bit_cast<Combination>(units);
#else
  return table[number];
#endif
}

/// Splits cells `begin` to `end` of a row into runs of one combination and mixed ones: visit(first, end, number), where
/// `number` may be kMixed. Cells beyond periodic walls, which no run covers, count as mixed.
template <class Combination, class Row, class Visit>
HEADRACE_HD inline void visit_runs(const FdtdMedia<Combination>& media, const Row& row, std::int32_t begin,
                                   std::int32_t end, const Visit& visit) {
  if (media.runs == nullptr) return visit(begin, end, 0U);
  constexpr std::int32_t kRun = FdtdMedia<Combination>::kRun;
  const auto& region = *row.region;
  const std::int64_t in_row = (region.extent[0] + kRun - 1) / kRun;
  const std::int32_t low = region.own_low[0];
  const std::int32_t y = region.own_low[1] + row.y;
  const std::int32_t z = region.own_low[2] + row.z;
  const bool is_covered = y >= 0 && y < region.extent[1] && z >= 0 && z < region.extent[2];
  const std::uint32_t* const runs = media.runs + (is_covered ? (std::int64_t{z} * region.extent[1] + y) * in_row : 0);
  const std::int32_t covered_low = -low;
  const std::int32_t covered_high = is_covered ? region.extent[0] - low : covered_low;
  for (std::int32_t first = begin; first < end;) {
    std::uint32_t number = FdtdMedia<Combination>::kMixed;
    std::int32_t after = end;
    if (first >= covered_low && first < covered_high) {
      std::int32_t run = (low + first) / kRun;
      number = runs[run];
      after = end < covered_high ? end : covered_high;
      while ((run + 1) * kRun - low < after && runs[run + 1] == number) ++run;
      after = (run + 1) * kRun - low < after ? (run + 1) * kRun - low : after;
    } else if (first < covered_low && covered_low < end) {
      after = covered_low;
    }
    visit(first, after, number);
    first = after;
  }
}

/// A stencil where all cells have the same coefficients.
template <class Stencil, class Combination>
struct InOneMedium {
  const Stencil& stencil;
  Combination its;

  template <int PhaseNumber, class Cell>
  HEADRACE_HD HEADRACE_INLINED void update(Cell cell) const {
    stencil.template update_in<PhaseNumber>(cell, its);
  }
};

/// Visits the runs of a row as PhaseKernel wants them, with constants where a run has one combination.
template <class Stencil, class Combination, class Row, class Visit>
HEADRACE_HD void visit_runs_in_one_medium(const Stencil& stencil, const FdtdMedia<Combination>& media, const Row& row,
                                          std::int32_t begin, std::int32_t end, const Visit& visit) {
  visit_runs(media, row, begin, end, [&](std::int32_t first, std::int32_t after, std::uint32_t number) {
    if (number == FdtdMedia<Combination>::kMixed) {
      visit(stencil, first, after);
    } else {
      visit(InOneMedium<Stencil, Combination>{stencil, media.table[number]}, first, after);
    }
  });
}

}  // namespace headrace::grid
