#include "fetch/host_chunk.hpp"

#include <fmt/format.h>

#include <cstring>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"

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

/// Writes the table's index for each of the chunk's, 0 where there is no value. An entry of the chunk's dictionary that
/// is itself null makes its values missing, which Arrow allows and no writer of files does: it is refused.
template <class Index>
void write_indices(const ColumnView& view, const std::vector<std::int32_t>& map, std::int32_t* to) {
  const auto* from = static_cast<const std::byte*>(view.values) + static_cast<std::size_t>(view.offset) * sizeof(Index);
  for (std::int64_t i = 0; i < view.length; ++i) {
    if (!has_value(view, i)) {
      to[i] = 0;
      continue;
    }
    Index index;  // a foreign file's may lie at any address
    std::memcpy(&index, from + static_cast<std::size_t>(i) * sizeof(Index), sizeof(Index));
    if (index < Index{0} || static_cast<std::uint64_t>(index) >= map.size()) {
      throw DataError(fmt::format("row {} has index {} of a dictionary of {}", i, index, map.size()));
    }
    to[i] = map[static_cast<std::size_t>(index)];
    if (to[i] < 0) throw DataError(fmt::format("row {} has a dictionary entry that is null", i));
  }
}

void write_indices(const Source& source, Chunk chunk, const ArrowArray& array, const ColumnView& view,
                   std::int32_t* to) {
  const Column& column = source.columns()[chunk.column];
  const auto map = source.dictionary(chunk.column)->merge(*array.dictionary, column.large_strings);
  switch (column.type.index) {
    case Type::int8: return write_indices<std::int8_t>(view, map, to);
    case Type::int16: return write_indices<std::int16_t>(view, map, to);
    case Type::int32: return write_indices<std::int32_t>(view, map, to);
    case Type::int64: return write_indices<std::int64_t>(view, map, to);
    case Type::uint8: return write_indices<std::uint8_t>(view, map, to);
    case Type::uint16: return write_indices<std::uint16_t>(view, map, to);
    case Type::uint32: return write_indices<std::uint32_t>(view, map, to);
    case Type::uint64: return write_indices<std::uint64_t>(view, map, to);
    default: throw DataError("a dictionary whose indices are no integers");
  }
}

ColumnView checked_view(const Source& source, Chunk chunk, const ArrowArray& array) {
  const std::int64_t rows = source.fragments()[chunk.fragment].rows;
  const Column& column = source.column_of(chunk.column);
  const ColumnView view = view_of(array, source.type_of(chunk.column));
  if (view.length != rows) throw DataError(fmt::format("{} rows where {} are expected", view.length, rows));
  if (view.validity != nullptr && !column.nullable) {
    throw DataError("nulls in a column that is said to have none");
  }
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
      budget(std::exchange(other.budget, nullptr)),
      charged(other.charged) {}

HostChunk& HostChunk::operator=(HostChunk&& other) noexcept {
  view = other.view;
  pinned = other.pinned;
  block = std::move(other.block);
  array = std::move(other.array);
  indices = std::move(other.indices);
  std::swap(budget, other.budget);
  std::swap(charged, other.charged);
  return *this;
}

HostChunk::~HostChunk() {
  if (budget != nullptr) budget->refund(charged);
}

ColumnView put_in(const Source& source, Chunk chunk, const ArrowArray& array, std::byte* block) {
  ColumnView view = checked_view(source, chunk, array);
  const bool strings = view.type.id == Type::dictionary;
  const DataType given = view.type;
  view.type = level_type(view.type);
  const ChunkShape shape = shape_of(view);
  if (strings) {
    ColumnView indices = view;
    indices.type = given;
    const std::int64_t first = view.offset % kBits;
    auto* to = reinterpret_cast<std::int32_t*>(block);
    std::fill(to, to + first, 0);
    write_indices(source, chunk, array, indices, to + first);
  } else if (shape.values_bytes > 0) {
    std::memcpy(block, values_from(view), shape.values_bytes);
  }
  if (shape.validity_bytes > 0) std::memcpy(block + shape.validity_at, validity_from(view), shape.validity_bytes);
  return view_in(view, shape, block);
}

ColumnView borrow(const Source& source, Chunk chunk, const ArrowArray& array, std::vector<std::int32_t>& indices) {
  ColumnView view = checked_view(source, chunk, array);
  if (view.type.id != Type::dictionary) return view;
  // The indices are for positions from 0 on, as the validity is from the first of its byte on.
  const std::int64_t first = view.offset % kBits;
  indices.assign(static_cast<std::size_t>(first + view.length), 0);
  write_indices(source, chunk, array, view, indices.data() + first);
  view.type = level_type(view.type);
  view.values = indices.data();
  if (view.validity != nullptr) view.validity += view.offset / kBits;
  view.offset = first;
  return view;
}

}  // namespace headrace::fetch
