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

/// Layout of a chunk in a block: values from byte 0 on, validity after them. The first value keeps the bit position,
/// below 8, that it had within its byte of the source's validity.
struct ChunkShape {
  std::size_t values_bytes = 0;
  std::size_t validity_at = 0;
  std::size_t validity_bytes = 0;  ///< 0 if no value is missing.

  [[nodiscard]] std::size_t bytes() const noexcept { return validity_at + validity_bytes; }
};

/// The shape of the chunk that a view shows.
[[nodiscard]] ChunkShape shape_of(const ColumnView& view) noexcept;
/// The largest shape that a chunk of `rows` rows can have.
[[nodiscard]] ChunkShape shape_bound(const DataType& type, std::int64_t rows, bool nullable) noexcept;

/// The first byte of a view's values, or of its validity, that its shape includes; null if there are none.
[[nodiscard]] const std::byte* values_from(const ColumnView& view) noexcept;
[[nodiscard]] const std::byte* validity_from(const ColumnView& view) noexcept;
/// The view of the same chunk in a block.
[[nodiscard]] ColumnView view_in(const ColumnView& view, const ChunkShape& shape, const std::byte* block) noexcept;

/// A chunk on the CPU level.
struct HostChunk {
  ColumnView view;
  bool pinned = false;  ///< The chunk lies in `block`, in its shape.
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

/// The type of a column on the levels: that of the source, except that the indices of strings are int32.
[[nodiscard]] DataType level_type(const DataType& type) noexcept;

/// Checks an array against its source's description and copies it into `block`, which must be large enough. Strings
/// become indices into the table's dictionary; a value whose entry in the chunk's dictionary is null becomes missing.
/// Throws DataError.
[[nodiscard]] ColumnView put_in(const Source& source, Chunk chunk, const ArrowArray& array, std::byte* block);
/// The same without a copy. Only for strings, the indices are written to `indices` and, if an entry is null, the bitmap
/// to `validity`.
[[nodiscard]] ColumnView borrow(const Source& source, Chunk chunk, const ArrowArray& array,
                                std::vector<std::int32_t>& indices, std::vector<std::uint8_t>& validity);

}  // namespace headrace::fetch
