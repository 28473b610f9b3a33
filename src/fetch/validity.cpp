#include "fetch/validity.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"

namespace headrace::fetch {

namespace {

/// Owner of an array of booleans; keeps its buffers alive.
struct Held {
  OwnedArray strings{};
  std::vector<std::uint8_t> bits;
  std::array<const void*, 2> buffers{};
};

void release_held(ArrowArray* array) {
  delete static_cast<Held*>(array->private_data);
  array->release = nullptr;
}

[[nodiscard]] OwnedArray booleans(std::unique_ptr<Held> held, std::int64_t rows, std::int64_t offset) {
  ArrowArray array{};
  array.length = rows;
  array.offset = offset;
  array.null_count = held->buffers[0] == nullptr ? 0 : -1;
  array.n_buffers = 2;
  array.buffers = held->buffers.data();
  array.private_data = held.release();
  array.release = &release_held;
  return OwnedArray(array);
}

[[nodiscard]] bool bit_of(const void* bits, std::int64_t at) noexcept {
  return (static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}

template <class Index>
[[nodiscard]] bool has_entry(const ColumnView& view, const ArrowArray& entries, std::int64_t row) {
  Index index;  // may be unaligned
  const auto at = static_cast<std::size_t>(view.offset + row) * sizeof(Index);
  std::memcpy(&index, static_cast<const std::byte*>(view.values) + at, sizeof(Index));
  if (index < Index{0} || static_cast<std::uint64_t>(index) >= static_cast<std::uint64_t>(entries.length)) {
    throw DataError("an index lies outside its dictionary");
  }
  return bit_of(entries.buffers[0], entries.offset + static_cast<std::int64_t>(index));
}

[[nodiscard]] bool has_entry(const ColumnView& view, const ArrowArray& entries, std::int64_t row) {
  switch (view.type.index) {
    case Type::int8: return has_entry<std::int8_t>(view, entries, row);
    case Type::int16: return has_entry<std::int16_t>(view, entries, row);
    case Type::int32: return has_entry<std::int32_t>(view, entries, row);
    case Type::int64: return has_entry<std::int64_t>(view, entries, row);
    case Type::uint8: return has_entry<std::uint8_t>(view, entries, row);
    case Type::uint16: return has_entry<std::uint16_t>(view, entries, row);
    case Type::uint32: return has_entry<std::uint32_t>(view, entries, row);
    case Type::uint64: return has_entry<std::uint64_t>(view, entries, row);
    default: throw DataError("the indices of a dictionary are not integers");
  }
}

/// Whether the dictionary itself has null entries, which make values missing.
[[nodiscard]] bool entries_miss(const ArrowArray& array) noexcept {
  const ArrowArray* const entries = array.dictionary;
  return entries != nullptr && entries->n_buffers > 0 && entries->buffers != nullptr &&
         entries->buffers[0] != nullptr && entries->null_count != 0;
}

}  // namespace

OwnedArray validity_array(OwnedArray strings, const DataType& type) {
  const ColumnView view = view_of(*strings, type);
  auto held = std::make_unique<Held>();
  const auto bytes = static_cast<std::size_t>((view.offset % 8 + view.length + 7) / 8);
  if (entries_miss(*strings)) {
    held->bits.resize(bytes);
    for (std::int64_t row = 0; row < view.length; ++row) {
      const bool there = view.validity == nullptr || bit_of(view.validity, view.offset + row);
      if (!there || !has_entry(view, *strings->dictionary, row)) continue;
      const std::int64_t at = view.offset % 8 + row;
      held->bits[static_cast<std::size_t>(at / 8)] |= static_cast<std::uint8_t>(1U << (at % 8));
    }
    held->buffers = {held->bits.data(), held->bits.data()};
    return booleans(std::move(held), view.length, view.offset % 8);
  }
  if (view.validity == nullptr) {
    held->bits.resize(bytes);
    held->buffers = {nullptr, held->bits.data()};
    return booleans(std::move(held), view.length, view.offset % 8);
  }
  held->buffers = {view.validity, view.validity};
  held->strings = std::move(strings);
  return booleans(std::move(held), view.length, view.offset);
}

OwnedArray validity_array(std::int64_t rows, bool there) {
  auto held = std::make_unique<Held>();
  held->bits.resize(static_cast<std::size_t>((rows + 7) / 8) + 1);
  held->buffers = {there ? nullptr : held->bits.data(), held->bits.data()};
  return booleans(std::move(held), rows, 0);
}

}  // namespace headrace::fetch
