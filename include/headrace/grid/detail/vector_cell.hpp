#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/cell.hpp"

// Precedes a loop whose iterations must be compile-time constants, so that what they index is in registers.
#if defined(__CUDA_ARCH__)
#define HEADRACE_UNROLLED _Pragma("unroll")
#else
#define HEADRACE_UNROLLED
#endif

namespace headrace::grid {

/// Whether a CUDA thread does a phase for 16 bytes of a row at a time. Stencils name such phases; those of kSwept are
/// included:
///
///   static constexpr std::array kVectored{0};
///
/// Their `update` should use compile-time constants for fields and offsets; others work, but are slow.
template <class Stencil>
[[nodiscard]] constexpr bool is_vectored(int phase) {
  const auto names = [phase](const auto& list) {
    for (const int one : list) {
      if (one == phase) return true;
    }
    return false;
  };
  if constexpr (requires { Stencil::kVectored; }) {
    return names(Stencil::kVectored);
  } else if constexpr (requires { Stencil::kSwept; }) {
    return names(Stencil::kSwept);
  } else {
    return false;
  }
}

/// Neighbouring cells in 16 bytes, with everything that a phase reads from them and from their neighbours. All loads
/// come first and together, because a compiler may not move a load before a store that could be to the same address.
template <class Stencil, int PhaseNumber>
class CellVector {
 public:
  using Value = typename Stencil::Value;
  using CellRow = Row<Value, Stencil::kFields>;
  static constexpr int kCells = 16 / static_cast<int>(sizeof(Value));

  /// @param x  of the first cell: a multiple of kCells
  HEADRACE_HD CellVector(const CellRow& row, std::int32_t x) noexcept {
    load_all(row, x, std::make_integer_sequence<int, Stencil::kFields>{});
  }

  HEADRACE_HD void store(const CellRow& row, std::int32_t x) const noexcept {
    store_all(row, x, std::make_integer_sequence<int, Stencil::kFields>{});
  }

  /// A field of the cell with this index, or of its neighbour.
  [[nodiscard]] HEADRACE_HD Value& at(int field, int cell, int dx = 0, int dy = 0, int dz = 0) noexcept {
    return values_[field][(dz + kLow[2]) * kRows + dy + kLow[1]][kLow[0] + cell + dx];
  }

 private:
  struct Reach {
    int of[3];
    HEADRACE_HD constexpr int operator[](int axis) const noexcept { return of[axis]; }
  };
  [[nodiscard]] static constexpr Reach reach_of(const Offsets& layers) noexcept {
    return {{static_cast<int>(layers[0]), static_cast<int>(layers[1]), static_cast<int>(layers[2])}};
  }
  static constexpr Phase kPhase = Stencil::kPhases[PhaseNumber];
  static constexpr Reach kLow = reach_of(kPhase.reach.low);
  static constexpr Reach kHigh = reach_of(kPhase.reach.high);
  static constexpr int kRows = kLow[1] + 1 + kHigh[1];
  static constexpr int kPlanes = kLow[2] + 1 + kHigh[2];

  struct alignas(16) Unit {
    Value of[kCells];
  };

  template <int... Field>
  HEADRACE_HD void load_all(const CellRow& row, std::int32_t x, std::integer_sequence<int, Field...> /*all*/) noexcept {
    (load<Field>(row, x), ...);
  }

  /// The compiler removes the unused parts if offsets are constants.
  template <int Field>
  HEADRACE_HD void load(const CellRow& row, std::int32_t x) noexcept {
    constexpr bool kAbout = kPhase.neighbours.contains(Field);
    constexpr bool kHere = kPhase.reads.contains(Field);
    if constexpr (kAbout) {
      HEADRACE_UNROLLED
      for (int dz = -kLow[2]; dz <= kHigh[2]; ++dz) {
        HEADRACE_UNROLLED
        for (int dy = -kLow[1]; dy <= kHigh[1]; ++dy) {
          const Value* from = row.at[Field] + x + dy * row.pitch + dz * row.plane;
          load_unit(from, Field, dy, dz);
          HEADRACE_UNROLLED
          for (int dx = 1; dx <= kLow[0]; ++dx) at(Field, 0, -dx, dy, dz) = from[-dx];
          HEADRACE_UNROLLED
          for (int dx = 1; dx <= kHigh[0]; ++dx) at(Field, kCells - 1, dx, dy, dz) = from[kCells - 1 + dx];
        }
      }
    } else if constexpr (kHere) {
      load_unit(row.at[Field] + x, Field, 0, 0);
    }
  }

  HEADRACE_HD void load_unit(const Value* from, int field, int dy, int dz) noexcept {
    const Unit unit = *reinterpret_cast<const Unit*>(from);
    HEADRACE_UNROLLED
    for (int i = 0; i < kCells; ++i) at(field, i, 0, dy, dz) = unit.of[i];
  }

  template <int... Field>
  HEADRACE_HD void store_all(const CellRow& row, std::int32_t x,
                             std::integer_sequence<int, Field...> /*all*/) const noexcept {
    (store_one<Field>(row, x), ...);
  }

  template <int Field>
  HEADRACE_HD void store_one(const CellRow& row, std::int32_t x) const noexcept {
    if constexpr (kPhase.writes.contains(Field)) {
      Unit unit;
      HEADRACE_UNROLLED
      for (int i = 0; i < kCells; ++i) unit.of[i] = values_[Field][kLow[2] * kRows + kLow[1]][kLow[0] + i];
      *reinterpret_cast<Unit*>(row.at[Field] + x) = unit;
    }
  }

  Value values_[Stencil::kFields][kPlanes * kRows][kLow[0] + kCells + kHigh[0]];
};

/// A Cell that lies in a CellVector.
template <class Stencil, int PhaseNumber>
class VectorCell : public Cell<Stencil, PhaseNumber> {
 public:
  using Base = Cell<Stencil, PhaseNumber>;
  using Value = typename Stencil::Value;
  using Vector = CellVector<Stencil, PhaseNumber>;

  HEADRACE_HD VectorCell(Vector& vector, const typename Base::CellRow& row, std::int32_t x, int number) noexcept
      : Base(row, x + number), vector_(vector), number_(number) {}

  [[nodiscard]] HEADRACE_HD Value get(int field) const noexcept {
    assert(Declared::here(field));
    return vector_.at(field, number_);
  }
  [[nodiscard]] HEADRACE_HD Value get(int field, int dx, int dy, int dz) const noexcept {
    assert(Declared::at_neighbour(field, dx, dy, dz));
    return vector_.at(field, number_, dx, dy, dz);
  }
  HEADRACE_HD void set(int field, Value value) const noexcept {
    assert(Declared::writes(field));
    vector_.at(field, number_) = value;
  }

 private:
  using Declared = PhaseAccess<Stencil, PhaseNumber>;

  Vector& vector_;
  int number_;
};

}  // namespace headrace::grid
