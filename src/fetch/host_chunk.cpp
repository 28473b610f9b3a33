#include "fetch/host_chunk.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"
#include "headrace/fetch/detail/mapped_file.hpp"

namespace headrace::fetch {

namespace {

constexpr std::int64_t kBits = 8;

std::size_t bits_bytes(std::int64_t bits) noexcept { return static_cast<std::size_t>((bits + kBits - 1) / kBits); }

ChunkShape shape(const DataType& type, std::int64_t positions, bool validity) noexcept {
  ChunkShape made;
  made.values_bytes = static_cast<std::size_t>(values_bytes(type, positions));
  made.validity_at = align_up(made.values_bytes, Slabs::kAlignment);
  made.validity_bytes = validity ? bits_bytes(positions) : 0;
  return made;
}

bool has_value(const ColumnView& view, std::int64_t i) noexcept {
  const std::int64_t at = view.offset + i;
  return view.validity == nullptr || (view.validity[at / kBits] >> (at % kBits) & 1) != 0;
}

/// Writes the table's index for each index of the chunk: 0 for a missing value, -1 for a null entry. Returns true if
/// there is a null entry.
template <class Index>
bool write_indices(const ColumnView& view, const std::vector<std::int32_t>& map, std::int32_t* to) {
  const auto* from = static_cast<const std::byte*>(view.values) + static_cast<std::size_t>(view.offset) * sizeof(Index);
  bool any_null = false;
  for (std::int64_t i = 0; i < view.length; ++i) {
    if (!has_value(view, i)) {
      to[i] = 0;
      continue;
    }
    Index index;  // in a foreign file it may be unaligned
    std::memcpy(&index, from + static_cast<std::size_t>(i) * sizeof(Index), sizeof(Index));
    if (index < Index{0} || static_cast<std::uint64_t>(index) >= map.size()) {
      throw DataError(
          fmt::format("row {} has dictionary index {}, but the dictionary has {} entries", i, index, map.size()));
    }
    to[i] = map[static_cast<std::size_t>(index)];
    any_null |= to[i] < 0;
  }
  return any_null;
}

/// Upper bound on the bytes of strings in a chunk's dictionary. In a mapped file, they cannot extend beyond its end.
std::size_t entry_bytes_max(const Source& source, Chunk chunk, const ArrowArray& array) {
  const MappedFile* const file = source.fragments()[chunk.fragment].mapped.get();
  const ArrowArray& entries = *array.dictionary;
  const bool has_bytes = entries.n_buffers == 3 && entries.buffers != nullptr;
  const std::size_t left = file == nullptr || !has_bytes ? 0 : file->bytes_from(entries.buffers[2]);
  return left > 0 ? left : std::numeric_limits<std::size_t>::max();
}

bool write_indices(const Source& source, Chunk chunk, const ArrowArray& array, const ColumnView& view,
                   std::int32_t* to) {
  const Column& column = source.columns()[chunk.column];
  const auto map = source.dictionary(chunk.column)
                       ->merge(*array.dictionary, column.large_strings, entry_bytes_max(source, chunk, array));
  switch (column.type.index) {
    case Type::int8: return write_indices<std::int8_t>(view, map, to);
    case Type::int16: return write_indices<std::int16_t>(view, map, to);
    case Type::int32: return write_indices<std::int32_t>(view, map, to);
    case Type::int64: return write_indices<std::int64_t>(view, map, to);
    case Type::uint8: return write_indices<std::uint8_t>(view, map, to);
    case Type::uint16: return write_indices<std::uint16_t>(view, map, to);
    case Type::uint32: return write_indices<std::uint32_t>(view, map, to);
    case Type::uint64: return write_indices<std::uint64_t>(view, map, to);
    default: throw DataError("the indices of a dictionary are not integers");
  }
}

/// Marks values with index -1 as missing, in a bitmap whose first value is at bit `first`.
/// @param bits  the validity so far, or uninitialised room for it.
void clear_null_entries(bool had_validity, std::int32_t* indices, std::int64_t length, std::int64_t first,
                        std::uint8_t* bits) {
  if (!had_validity) std::memset(bits, 0xFF, bits_bytes(first + length));
  for (std::int64_t i = 0; i < length; ++i) {
    if (indices[i] >= 0) continue;
    indices[i] = 0;
    bits[(first + i) / kBits] &= static_cast<std::uint8_t>(~(1U << ((first + i) % kBits)));
  }
}

void require_nullable(const Source& source, Chunk chunk) {
  if (source.column_of(chunk.column).nullable) return;
  throw DataError("a column that is declared not nullable has nulls");
}

ColumnView checked_view(const Source& source, Chunk chunk, const ArrowArray& array) {
  const std::int64_t rows = source.fragments()[chunk.fragment].rows;
  const ColumnView view = view_of(array, source.type_of(chunk.column));
  if (view.length != rows) throw DataError(fmt::format("the chunk has {} rows, not {}", view.length, rows));
  if (view.validity != nullptr) require_nullable(source, chunk);
  return view;
}

}  // namespace

DataType level_type(const DataType& type) noexcept {
  return type.id == Type::dictionary ? DataType{.id = Type::dictionary, .index = Type::int32} : type;
}

ChunkShape shape_of(const ColumnView& view) noexcept {
  return shape(view.type, view.offset % kBits + view.length, view.validity != nullptr);
}

ChunkShape shape_bound(const DataType& type, std::int64_t rows, bool nullable) noexcept {
  return shape(level_type(type), kBits - 1 + rows, nullable);
}

const std::byte* values_from(const ColumnView& view) noexcept {
  if (view.values == nullptr) return nullptr;
  return static_cast<const std::byte*>(view.values) + view.offset / kBits * value_bits(view.type);
}

const std::byte* validity_from(const ColumnView& view) noexcept {
  if (view.validity == nullptr) return nullptr;
  return reinterpret_cast<const std::byte*>(view.validity) + view.offset / kBits;
}

ColumnView view_in(const ColumnView& view, const ChunkShape& shape, const std::byte* block) noexcept {
  ColumnView in = view;
  in.values = block;
  in.validity = view.validity == nullptr ? nullptr : reinterpret_cast<const std::uint8_t*>(block + shape.validity_at);
  in.offset = view.offset % kBits;
  return in;
}

HostChunk::HostChunk(HostChunk&& other) noexcept
    : view(other.view),
      pinned(other.pinned),
      block(std::move(other.block)),
      array(std::move(other.array)),
      indices(std::move(other.indices)),
      validity(std::move(other.validity)),
      budget(std::exchange(other.budget, nullptr)),
      charged(other.charged) {}

HostChunk& HostChunk::operator=(HostChunk&& other) noexcept {
  view = other.view;
  pinned = other.pinned;
  block = std::move(other.block);
  array = std::move(other.array);
  indices = std::move(other.indices);
  validity = std::move(other.validity);
  std::swap(budget, other.budget);
  std::swap(charged, other.charged);
  return *this;
}

HostChunk::~HostChunk() {
  if (budget != nullptr) budget->refund(charged);
}

ColumnView put_in(const Source& source, Chunk chunk, const ArrowArray& array, std::byte* block) {
  ColumnView view = checked_view(source, chunk, array);
  const DataType given = view.type;
  view.type = level_type(view.type);
  const ChunkShape shape = shape_of(view);
  auto* const validity = reinterpret_cast<std::uint8_t*>(block + shape.validity_at);
  if (shape.validity_bytes > 0) std::memcpy(validity, validity_from(view), shape.validity_bytes);
  if (given.id != Type::dictionary) {
    if (shape.values_bytes > 0) std::memcpy(block, values_from(view), shape.values_bytes);
    return view_in(view, shape, block);
  }
  ColumnView indices = view;
  indices.type = given;
  const std::int64_t first = view.offset % kBits;
  auto* const to = reinterpret_cast<std::int32_t*>(block);
  std::fill(to, to + first, 0);
  const bool any_null = write_indices(source, chunk, array, indices, to + first);
  ColumnView made = view_in(view, shape, block);
  if (any_null) {
    require_nullable(source, chunk);  // so the block has room for the validity
    clear_null_entries(view.validity != nullptr, to + first, view.length, first, validity);
    made.validity = validity;
    made.null_count = -1;
  }
  return made;
}

ColumnView borrow(const Source& source, Chunk chunk, const ArrowArray& array, std::vector<std::int32_t>& indices,
                  std::vector<std::uint8_t>& validity) {
  ColumnView view = checked_view(source, chunk, array);
  if (view.type.id != Type::dictionary) return view;
  // The indices start at position 0, the validity at the first bit of a byte.
  const std::int64_t first = view.offset % kBits;
  indices.assign(static_cast<std::size_t>(first + view.length), 0);
  const bool any_null = write_indices(source, chunk, array, view, indices.data() + first);
  view.type = level_type(view.type);
  view.values = indices.data();
  if (view.validity != nullptr) view.validity += view.offset / kBits;
  view.offset = first;
  if (!any_null) return view;
  require_nullable(source, chunk);
  validity.resize(bits_bytes(first + view.length));
  if (view.validity != nullptr) std::memcpy(validity.data(), view.validity, validity.size());
  clear_null_entries(view.validity != nullptr, indices.data() + first, view.length, first, validity.data());
  view.validity = validity.data();
  view.null_count = -1;
  return view;
}

}  // namespace headrace::fetch
