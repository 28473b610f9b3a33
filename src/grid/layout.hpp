#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/detail/region.hpp"

namespace headrace::grid {

/// The memory layout of a part. Around the owned cells it has ghosts, and cells outside the domain, which always stay
/// 0. They extend as far as the stencil reads, so an update needs no bounds check.
struct PartLayout {
  Box own;
  Layers pads;  ///< Ghosts and outside cells around the owned ones.
  std::size_t value_bytes = 0;
  /// In values. The first owned cell of each row is aligned to 128 bytes; the cells before it share a line with the end
  /// of the previous row.
  std::int64_t pitch = 0;
  std::int64_t plane = 0;
  std::int64_t origin = 0;       ///< Index of the first owned cell.
  std::int64_t field_bytes = 0;  ///< Size of one field.
  std::int64_t front_bytes = 0;  ///< Offset of a field's start from a multiple of 128.

  /// Index of a cell of the domain, relative to the first owned cell.
  [[nodiscard]] std::int64_t at(const Offsets& cell) const noexcept {
    return (cell[0] - own.low[0]) + (cell[1] - own.low[1]) * pitch + (cell[2] - own.low[2]) * plane;
  }
  /// Distance between fields. It is not a multiple of a large power of two, so the same cell of many fields does not
  /// fall into one cache set. The 256 additional bytes are at least as many as front_bytes can be.
  [[nodiscard]] std::int64_t stride_bytes() const noexcept { return field_bytes + 256; }
  /// Memory for this many fields.
  [[nodiscard]] std::size_t memory_bytes(int fields) const noexcept {
    return static_cast<std::size_t>(stride_bytes()) * static_cast<std::size_t>(fields);
  }
  [[nodiscard]] LocalBox local(const Box& box) const noexcept;
  /// A region that has no boxes yet.
  [[nodiscard]] Region region(const Extent& extent) const noexcept;
};

/// `neighbours` is 1 on each side with another part. Throws UsageError if the part has too many rows to count.
[[nodiscard]] PartLayout lay_out(const Box& own, const Layers& neighbours, const Layers& ghosts, const Layers& edge,
                                 std::size_t value_bytes);

}  // namespace headrace::grid
