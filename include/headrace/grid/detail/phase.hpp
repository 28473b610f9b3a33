#pragma once

#include <cstdint>

#include "headrace/grid/detail/box.hpp"

namespace headrace::grid {

/// The most fields that a stencil can have.
inline constexpr int kFieldsMax = 64;

/// A subset of a stencil's fields.
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

/// One of the passes over the cells that make up a step, with everything that Headrace needs to know about it. From
/// this it derives how wide ghosts are, which fields are exchanged, and what can run during an exchange. A cell must
/// not read at a neighbour what the same phase writes, because cells are updated in no particular order.
struct Phase {
  /// The fields it sets. A field that it does not set at every cell of its boxes belongs in `reads` too, because the
  /// values it leaves are then needed like those it reads.
  FieldSet writes;
  /// The fields it gets at the cell itself.
  FieldSet reads;
  /// The fields it gets at neighbours.
  FieldSet neighbours;
  /// The distance of those neighbours.
  Layers reach;
};

/// Two fields that change places after each step.
struct Swap {
  int first = 0;
  int second = 0;
};

}  // namespace headrace::grid
