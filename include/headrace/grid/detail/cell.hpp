#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/region.hpp"

namespace headrace::grid {

/// A row of a part, as its cells access it.
template <class Value, int FieldCount>
struct Row {
  Value* at[FieldCount];  ///< The cell with x = 0 of each field.
  const Region* region;
  std::int64_t pitch;
  std::int64_t plane;
  std::int32_t y;
  std::int32_t z;

  HEADRACE_HD Row(const FieldTable& table, const Region& its_region, std::int32_t its_y, std::int32_t its_z) noexcept
      : region(&its_region), pitch(its_region.pitch), plane(its_region.plane), y(its_y), z(its_z) {
    for (int field = 0; field < FieldCount; ++field) {
      at[field] = table.origin<Value>(field) + y * pitch + z * plane;
    }
  }
};

/// The accesses that a phase declares, to check actual accesses against.
template <class Stencil, int PhaseNumber>
struct PhaseAccess {
  [[nodiscard]] HEADRACE_HD static constexpr bool writes(int field) noexcept {
    constexpr Phase kDeclared = Stencil::kPhases[PhaseNumber];
    return kDeclared.writes.contains(field);
  }
  [[nodiscard]] HEADRACE_HD static constexpr bool here(int field) noexcept {
    constexpr Phase kDeclared = Stencil::kPhases[PhaseNumber];
    return (kDeclared.reads | kDeclared.writes).contains(field);
  }
  [[nodiscard]] HEADRACE_HD static constexpr bool at_neighbour(int field, int dx, int dy, int dz) noexcept {
    constexpr Phase kDeclared = Stencil::kPhases[PhaseNumber];
    constexpr Layers kReach = kDeclared.reach;
    return kDeclared.neighbours.contains(field) && reaches(kReach.low[0], kReach.high[0], dx) &&
           reaches(kReach.low[1], kReach.high[1], dy) && reaches(kReach.low[2], kReach.high[2], dz);
  }

 private:
  [[nodiscard]] HEADRACE_HD static constexpr bool reaches(std::int64_t low, std::int64_t high, int offset) noexcept {
    return -low <= offset && offset <= high;
  }
};

/// The view of a stencil's update: the cell to update, and its neighbours. Fields are the stencil's own enumerators. In
/// a build with assertions, accessing a field or neighbour that the phase does not declare aborts the program.
template <class Stencil, int PhaseNumber>
class Cell {
 public:
  using Value = typename Stencil::Value;
  using CellRow = Row<Value, Stencil::kFields>;

  HEADRACE_HD Cell(const CellRow& row, std::int32_t x) noexcept : row_(row), x_(x) {}

  /// The value of a field in this cell.
  [[nodiscard]] HEADRACE_HD Value get(int field) const noexcept {
    assert(Declared::here(field));
    return row_.at[field][x_];
  }
  /// The value of a field in a neighbour; 0 outside the domain.
  [[nodiscard]] HEADRACE_HD Value get(int field, int dx, int dy, int dz) const noexcept {
    assert(Declared::at_neighbour(field, dx, dy, dz));
    return row_.at[field][x_ + dx + dy * row_.pitch + dz * row_.plane];
  }
  HEADRACE_HD void set(int field, Value value) const noexcept {
    assert(Declared::writes(field));
    row_.at[field][x_] = value;
  }

  /// The position of this cell in the domain.
  [[nodiscard]] HEADRACE_HD std::int32_t x() const noexcept { return row_.region->own_low[0] + x_; }
  [[nodiscard]] HEADRACE_HD std::int32_t y() const noexcept { return row_.region->own_low[1] + row_.y; }
  [[nodiscard]] HEADRACE_HD std::int32_t z() const noexcept { return row_.region->own_low[2] + row_.z; }
  /// The number of cells of the domain along an axis.
  [[nodiscard]] HEADRACE_HD std::int32_t extent(int axis) const noexcept { return row_.region->extent[axis]; }
  /// Steps done before this one.
  [[nodiscard]] HEADRACE_HD std::uint64_t step() const noexcept { return row_.region->step; }
  /// False in a ghost cell, which another part owns and also updates. Write to the stencil's own memory only if true.
  [[nodiscard]] HEADRACE_HD bool owned() const noexcept {
    const Region& region = *row_.region;
    return x_ >= 0 && x_ < region.own_size[0] && row_.y >= 0 && row_.y < region.own_size[1] && row_.z >= 0 &&
           row_.z < region.own_size[2];
  }

 private:
  using Declared = PhaseAccess<Stencil, PhaseNumber>;

  const CellRow& row_;
  std::int32_t x_;
};

}  // namespace headrace::grid
