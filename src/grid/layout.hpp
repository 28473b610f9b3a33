#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/detail/region.hpp"

namespace headrace::grid {

/// Where the cells of a part lie in memory. About what it owns are ghosts, and cells outside the domain, which are 0
/// and stay so, as far as the stencil reads: so no update asks where it is.
struct PartLayout {
  Box own;
  Layers pads;  ///< Cells about it, of either sort.
  std::size_t value_bytes = 0;
  /// In values; the first owned cell of each row is at a multiple of 128 bytes, and those before it share a line with
  /// the end of the row before.
  std::int64_t pitch = 0;
  std::int64_t plane = 0;
  std::int64_t origin = 0;       ///< The place of the first owned cell, in values.
  std::int64_t field_bytes = 0;  ///< The bytes of one field,
  std::int64_t front_bytes = 0;  ///< which begins so far behind a multiple of 128 bytes.

  /// A cell of the domain, in values from the first owned.
  [[nodiscard]] std::int64_t at(const Offsets& cell) const noexcept {
    return (cell[0] - own.low[0]) + (cell[1] - own.low[1]) * pitch + (cell[2] - own.low[2]) * plane;
  }
  /// From one field to the next: not a multiple of a large power of two, so that the same cell of many fields does not
  /// fall into one set of a cache. The rest is no less than front_bytes can be.
  [[nodiscard]] std::int64_t stride_bytes() const noexcept { return field_bytes + 256; }
  /// The bytes of so many fields.
  [[nodiscard]] std::size_t memory_bytes(int fields) const noexcept {
    return static_cast<std::size_t>(stride_bytes()) * static_cast<std::size_t>(fields);
  }
  [[nodiscard]] LocalBox local(const Box& box) const noexcept;
  /// A region without boxes yet.
  [[nodiscard]] Region region(const Extent& extent) const noexcept;
};

/// `neighbours`: 1 on the sides where another part is. Throws UsageError when the part has more rows than can be
/// counted.
[[nodiscard]] PartLayout lay_out(const Box& own, const Layers& neighbours, const Layers& ghosts, const Layers& edge,
                                 std::size_t value_bytes);

}  // namespace headrace::grid
