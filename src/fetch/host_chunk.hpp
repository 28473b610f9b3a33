#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "fetch/slabs.hpp"
#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// How a chunk lies in a block: values from byte 0 on, validity after them. Its first value is at a position below 8,
/// that which it has in its byte of the validity that it was copied from.
struct ChunkShape {
  std::size_t values_bytes = 0;
  std::size_t validity_at = 0;
  std::size_t validity_bytes = 0;  ///< 0: none is missing.

  [[nodiscard]] std::size_t bytes() const noexcept { return validity_at + validity_bytes; }
};

/// The shape of what a view shows.
[[nodiscard]] ChunkShape shape_of(const ColumnView& view) noexcept;
/// The largest that a chunk of so many rows can have.
[[nodiscard]] ChunkShape shape_bound(const DataType& type, std::int64_t rows, bool nullable) noexcept;

/// The first byte of a view's values and validity that its shape takes in; null where it has none.
[[nodiscard]] const std::byte* values_from(const ColumnView& view) noexcept;
[[nodiscard]] const std::byte* validity_from(const ColumnView& view) noexcept;
/// The view's chunk as it is in a block.
[[nodiscard]] ColumnView view_in(const ColumnView& view, const ChunkShape& shape, const std::byte* block) noexcept;

/// A chunk on the CPU level.
struct HostChunk {
  ColumnView view;
  bool pinned = false;  ///< It lies in a block, in its shape.
  Slabs::Block block;
  OwnedArray array;                    ///< The values of a pageable chunk.
  std::vector<std::int32_t> indices;   ///< The indices of a pageable chunk of strings.
  std::vector<std::uint8_t> validity;  ///< The validity of a chunk whose dictionary has entries that are null.
  Budget* budget = nullptr;            ///< What a pageable chunk is charged to.
  std::size_t charged = 0;

  HostChunk() = default;
  HostChunk(HostChunk&& other) noexcept;
  HostChunk& operator=(HostChunk&& other) noexcept;
  ~HostChunk();
};

/// The type that a column has on the levels: as the source has it, but for the indices of strings.
[[nodiscard]] DataType level_type(const DataType& type) noexcept;

/// Checks an array that a source gave against what it said, and puts it into `block`, whose memory is large enough.
/// Strings get the indices of the table's dictionary; a value whose entry in the chunk's is null is missing. Throws
/// DataError.
[[nodiscard]] ColumnView put_in(const Source& source, Chunk chunk, const ArrowArray& array, std::byte* block);
/// The same without a copy, except for strings, whose indices are written to `indices`, and where an entry is null also
/// the validity.
[[nodiscard]] ColumnView borrow(const Source& source, Chunk chunk, const ArrowArray& array,
                                std::vector<std::int32_t>& indices, std::vector<std::uint8_t>& validity);

}  // namespace headrace::fetch
