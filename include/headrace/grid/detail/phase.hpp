#pragma once

#include <cstdint>

#include "headrace/grid/detail/box.hpp"

namespace headrace::grid {

/// Most fields that a stencil has.
inline constexpr int kFieldsMax = 64;

/// Some of a stencil's fields.
struct FieldSet {
  std::uint64_t mask = 0;

  [[nodiscard]] constexpr bool contains(int field) const noexcept {
    return (mask >> static_cast<unsigned>(field) & 1U) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return mask == 0; }
  [[nodiscard]] constexpr bool within(FieldSet other) const noexcept { return (mask & ~other.mask) == 0; }
  friend constexpr FieldSet operator&(FieldSet a, FieldSet b) noexcept { return {a.mask & b.mask}; }
  friend constexpr FieldSet operator|(FieldSet a, FieldSet b) noexcept { return {a.mask | b.mask}; }
  friend constexpr bool operator==(FieldSet, FieldSet) = default;
};

/// fields(now, next): each from 0 to kFieldsMax - 1.
template <class... Field>
[[nodiscard]] constexpr FieldSet fields(Field... its) noexcept {
  return {(std::uint64_t{0} | ... | (std::uint64_t{1} << static_cast<unsigned>(its)))};
}

/// `count` fields from `first` on.
[[nodiscard]] constexpr FieldSet fields_from(int first, int count) noexcept {
  FieldSet made;
  for (int field = first; field < first + count; ++field) made = made | fields(field);
  return made;
}

/// One pass over the cells, of the one or several that a step has, and all that Headrace needs to know of it: from this
/// it works out how wide ghosts are, which fields are exchanged, and what can run while they are. A cell must read
/// nothing at a neighbour that the same phase writes, for cells are updated in no order.
struct Phase {
  /// What it sets. A field that it does not set at every cell of its boxes belongs in `reads` too: what it leaves is
  /// then as needed as what it reads.
  FieldSet writes;
  /// What it gets at the cell itself.
  FieldSet reads;
  /// What it gets at neighbours.
  FieldSet neighbours;
  /// How far those neighbours are.
  Layers reach;
};

/// After each step what was the one field is the other.
struct Swap {
  int first = 0;
  int second = 0;
};

}  // namespace headrace::grid
