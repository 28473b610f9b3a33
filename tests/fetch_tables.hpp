#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/source.hpp"

/// In-memory tables with known values, shared by the tests of fetch.
namespace headrace::testing {

/// A utf8 array.
class StringArray {
 public:
  explicit StringArray(const std::vector<std::string>& entries) {
    for (const auto& entry : entries) {
      bytes_ += entry;
      offsets_.push_back(static_cast<std::int32_t>(bytes_.size()));
    }
    buffers_ = {nullptr, offsets_.data(), bytes_.data()};
    array_.length = static_cast<std::int64_t>(entries.size());
    array_.n_buffers = 3;
    array_.buffers = buffers_.data();
    array_.release = [](ArrowArray* array) { array->release = nullptr; };
  }
  StringArray(const StringArray&) = delete;
  StringArray& operator=(const StringArray&) = delete;
  ~StringArray() = default;
  [[nodiscard]] ArrowArray& array() noexcept { return array_; }
  [[nodiscard]] const ArrowArray& array() const noexcept { return array_; }
  [[nodiscard]] std::vector<std::int32_t>& offsets() noexcept { return offsets_; }

 private:
  std::string bytes_;
  std::vector<std::int32_t> offsets_{0};
  std::array<const void*, 3> buffers_{};
  ArrowArray array_{};
};

/// int32 with nulls, float64, bool with nulls, decimal128 with nulls, dictionary of five strings with nulls.
inline constexpr std::uint32_t kTableColumns = 5;
inline constexpr int kStrings = 5;

/// A value as a number, computed from the row's number in its fragment: a bool is 0 or 1, a double its bits, a decimal
/// its unscaled value, string "s3" is 3.
[[nodiscard]] inline std::optional<std::int64_t> value_of(std::uint32_t column, std::int64_t row) {
  if (column != 1 && row % (column + 3) == 1) return std::nullopt;
  switch (column) {
    case 0: return row * 7 - 300;
    case 1: return std::bit_cast<std::int64_t>(static_cast<double>(row) / 3);
    case 2: return row % 3 == 0 ? 1 : 0;
    case 3: return -row * 1'000'000'007;
    default: return row * row % kStrings;
  }
}

namespace detail {

struct TableMemory {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::array<const void*, 2>> pointers;
  std::vector<ArrowArray> columns;
  std::vector<ArrowArray*> children;
  std::unique_ptr<StringArray> strings;
  std::array<const void*, 1> none{nullptr};
};

inline void set_bit(std::vector<std::byte>& bits, std::int64_t at) {
  bits[static_cast<std::size_t>(at / 8)] |= std::byte{1} << static_cast<int>(at % 8);
}

inline void write_value(std::vector<std::byte>& values, std::uint32_t column, std::int64_t row, std::int64_t value,
                        bool reversed) {
  const auto put = [&](const auto& item) {
    std::memcpy(values.data() + static_cast<std::size_t>(row) * sizeof(item), &item, sizeof(item));
  };
  switch (column) {
    case 0: return put(static_cast<std::int32_t>(value));
    case 1: return put(value);
    case 2: return value == 1 ? set_bit(values, row) : void();
    case 3: return put(std::array<std::int64_t, 2>{value, value < 0 ? -1 : 0});
    default: return put(static_cast<std::int8_t>(reversed ? kStrings - 1 - value : value));
  }
}

/// A record batch of `rows` rows that starts at row `first`. A reversed batch has its strings in another order.
inline fetch::OwnedArray make_batch(std::int64_t rows, std::int64_t first, bool reversed) {
  constexpr std::array<std::size_t, kTableColumns> bits{32, 64, 1, 128, 8};
  auto memory = std::make_unique<TableMemory>();
  std::vector<std::string> entries;
  for (int i = 0; i < kStrings; ++i) entries.push_back(fmt::format("s{}", reversed ? kStrings - 1 - i : i));
  memory->strings = std::make_unique<StringArray>(entries);
  memory->pointers.resize(kTableColumns);
  memory->columns.resize(kTableColumns);
  const auto count = static_cast<std::size_t>(rows);
  for (std::uint32_t column = 0; column < kTableColumns; ++column) {
    auto& values = memory->buffers.emplace_back((count * bits[column] + 7) / 8 + 1);
    std::vector<std::byte> validity((count + 7) / 8 + 1);
    bool all = true;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto value = value_of(column, row);
      all = all && value;
      if (!value) continue;
      set_bit(validity, row);
      write_value(values, column, row, *value, reversed);
    }
    const void* const data = values.data();
    memory->buffers.push_back(std::move(validity));
    memory->pointers[column] = {all ? nullptr : memory->buffers.back().data(), data};
    ArrowArray& array = memory->columns[column];
    array.length = rows;
    array.null_count = all ? 0 : -1;
    array.n_buffers = 2;
    array.buffers = memory->pointers[column].data();
    if (column == kTableColumns - 1) array.dictionary = &memory->strings->array();
    memory->children.push_back(&array);
  }
  ArrowArray batch{};
  batch.length = rows - first;
  batch.offset = first;
  batch.n_buffers = 1;
  batch.buffers = memory->none.data();
  batch.n_children = kTableColumns;
  batch.children = memory->children.data();
  batch.private_data = memory.release();
  batch.release = [](ArrowArray* array) {
    delete static_cast<TableMemory*>(array->private_data);
    array->release = nullptr;
  };
  return fetch::OwnedArray(batch);
}

}  // namespace detail

struct TableOf {
  std::int64_t rows = 1000;  ///< The rows of a fragment.
  std::uint32_t fragments = 4;
  std::int64_t first = 0;  ///< Rows to skip at the start of each fragment, as a slice does.
};

/// The schema of those tables.
class TableSchema {
 public:
  TableSchema() {
    constexpr std::array<const char*, kTableColumns> names{"number", "real", "flag", "price", "name"};
    constexpr std::array<const char*, kTableColumns> formats{"i", "g", "b", "d:20,2", "c"};
    strings_.format = "u";
    for (std::size_t i = 0; i < kTableColumns; ++i) {
      columns_[i].format = formats[i];
      columns_[i].name = names[i];
      columns_[i].flags = i == 1 ? 0 : ARROW_FLAG_NULLABLE;
      children_[i] = &columns_[i];
    }
    columns_[kTableColumns - 1].dictionary = &strings_;
    schema_.format = "+s";
    schema_.n_children = kTableColumns;
    schema_.children = children_.data();
  }
  TableSchema(const TableSchema&) = delete;
  TableSchema& operator=(const TableSchema&) = delete;
  ~TableSchema() = default;
  [[nodiscard]] const ArrowSchema& operator*() const noexcept { return schema_; }

 private:
  std::array<ArrowSchema, kTableColumns> columns_{};
  std::array<ArrowSchema*, kTableColumns> children_{};
  ArrowSchema strings_{};
  ArrowSchema schema_{};
};

/// An in-memory table. Every second fragment has its strings in another order.
[[nodiscard]] inline std::shared_ptr<fetch::ArrowSource> table_of(const TableOf& of) {
  const TableSchema schema;
  std::vector<fetch::ArrowSource::Batch> batches;
  for (std::uint32_t i = 0; i < of.fragments; ++i) {
    batches.push_back({.array = detail::make_batch(of.rows, of.first, i % 2 == 1), .number = i});
  }
  return std::make_shared<fetch::ArrowSource>(*schema, std::move(batches));
}

/// A value of a chunk that the host can read, encoded as by value_of(); a string is its index in the table's
/// dictionary.
[[nodiscard]] inline std::optional<std::int64_t> value_at(const fetch::ColumnView& view, std::int64_t row) {
  const std::int64_t at = view.offset + row;
  if (view.validity != nullptr && (view.validity[at / 8] >> (at % 8) & 1) == 0) return std::nullopt;
  const auto* const values = static_cast<const std::byte*>(view.values);
  const auto get = [&](auto item) {
    std::memcpy(&item, values + static_cast<std::size_t>(at) * sizeof(item), sizeof(item));
    return item;
  };
  switch (view.type.id) {
    case fetch::Type::int32:
    case fetch::Type::dictionary: return get(std::int32_t{});
    case fetch::Type::float64: return get(std::int64_t{});
    case fetch::Type::boolean: return std::to_integer<int>(values[at / 8] >> static_cast<int>(at % 8)) & 1;
    default: return get(std::array<std::int64_t, 2>{})[0];
  }
}

/// The same, but a string's number comes from the text in the table's dictionary.
[[nodiscard]] inline std::optional<std::int64_t> value_at(const fetch::Source& source, std::uint32_t column,
                                                          const fetch::ColumnView& view, std::int64_t row) {
  const auto value = value_at(view, row);
  if (!value || view.type.id != fetch::Type::dictionary) return value;
  return source.dictionary(column)->entry(static_cast<std::size_t>(*value)).at(1) - '0';
}

}  // namespace headrace::testing
