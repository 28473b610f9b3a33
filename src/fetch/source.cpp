#include "headrace/fetch/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "fetch/validity.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"

namespace headrace::fetch {

namespace {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::vector<Column> columns_of(const ArrowSchema& schema) {
  if (schema.format == nullptr || schema.format != std::string_view("+s")) {
    throw DataError("a table's schema must be a struct of its columns");
  }
  if (schema.n_children > 0 && schema.children == nullptr) throw DataError("a schema's list of columns is missing");
  std::vector<Column> columns;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) throw DataError(fmt::format("a schema has no entry for its column {}", i));
    const ArrowSchema& child = *schema.children[i];
    const std::string name = child.name == nullptr ? "" : child.name;
    const auto type = type_of(child);
    if (!type) {
      throw UsageError(fmt::format("column '{}': Arrow type '{}' is not supported", name,
                                   child.format == nullptr ? "" : child.format));
    }
    const std::string_view entries = child.dictionary == nullptr ? "" : child.dictionary->format;
    columns.push_back({.name = name,
                       .type = *type,
                       .nullable = (child.flags & ARROW_FLAG_NULLABLE) != 0,
                       .large_strings = entries == "U" || entries == "Z"});
  }
  return columns;
}

std::vector<Fragment> fragments_of(const std::vector<ArrowSource::Batch>& batches, std::int64_t column_count) {
  std::vector<Fragment> fragments;
  for (const ArrowSource::Batch& batch : batches) {
    const OwnedArray& array = batch.array;
    const auto refuse = [&](std::string_view why) {
      throw DataError(
          fmt::format("{}record batch {}: {}", batch.file.empty() ? "" : batch.file + ", ", batch.number, why));
    };
    if (array.empty() || array->n_children != column_count) refuse("it does not have the schema's columns");
    if (array->length < 0 || array->offset < 0) refuse("its length or offset is negative");
    if (array->length > kTableRowsMax || array->offset > kTableRowsMax) refuse("its length or offset is too large");
    if (column_count > 0 && array->children == nullptr) refuse("it does not have the schema's columns");
    const bool may_be_null = array->n_buffers > 0 && array->buffers != nullptr && array->buffers[0] != nullptr;
    if (may_be_null && array->null_count != 0) refuse("it has rows that are null as a whole");
    for (std::int64_t i = 0; i < column_count; ++i) {
      const ArrowArray* const column = array->children[i];
      if (column == nullptr) refuse("it does not have the schema's columns");
      if (column->length < array->offset + array->length) refuse("a column has too few rows");
      if (column->offset < 0 || column->offset > kTableRowsMax) refuse("a column has an invalid offset");
    }
    fragments.push_back({.file = batch.file, .row_group = batch.number, .rows = array->length, .mapped = batch.mapped});
  }
  return fragments;
}

/// Owner of a column that is borrowed from a batch; keeps the batch alive.
struct Borrowed {
  std::shared_ptr<const ArrowSource::Batch> batch;
};

void release_borrowed(ArrowArray* array) {
  delete static_cast<Borrowed*>(array->private_data);
  array->release = nullptr;
}

std::size_t buffer_bytes(const ColumnView& view) {
  const std::int64_t first = view.offset * value_bits(view.type) / 8;
  return static_cast<std::size_t>(values_bytes(view.type, view.offset + view.length) - first);
}

}  // namespace

Source::Source(std::vector<Column> columns, std::vector<Fragment> fragments)
    : columns_(std::move(columns)), fragments_(std::move(fragments)), id_(next_id()) {
  if (columns_.empty()) throw UsageError("a table needs at least one column");
  std::unordered_set<std::string_view> names;
  for (const Column& column : columns_) {
    if (!names.insert(column.name).second) throw UsageError(fmt::format("two columns are called '{}'", column.name));
    dictionaries_.push_back(column.type.id == Type::dictionary ? std::make_shared<Dictionary>(column.name) : nullptr);
  }
  for (const Fragment& fragment : fragments_) {
    if (fragment.rows < 0 || fragment.rows > kTableRowsMax - rows_) {
      throw DataError(fmt::format("{}row group {} has {} rows, but a table has at most {} in total",
                                  fragment.file.empty() ? "" : fragment.file + ", ", fragment.row_group, fragment.rows,
                                  kTableRowsMax));
    }
    rows_ += fragment.rows;
  }
}

void Source::require_unchanged(std::uint32_t fragment) const {
  const auto& mapped = fragments_.at(fragment).mapped;
  if (mapped != nullptr) mapped->require_unchanged();
}

void Source::require_unchanged() const {
  const MappedFile* last = nullptr;  // a file's fragments are consecutive
  for (const Fragment& fragment : fragments_) {
    if (fragment.mapped == nullptr || fragment.mapped.get() == last) continue;
    last = fragment.mapped.get();
    last->require_unchanged();
  }
}

std::shared_ptr<Dictionary> Source::dictionary(std::uint32_t column) const {
  const std::lock_guard lock(dictionaries_mutex_);
  if (dictionaries_.empty()) throw UsageError("the table has been closed", Errc::stopped);
  return dictionaries_.at(column);
}

void Source::close() noexcept {
  std::vector<std::shared_ptr<Dictionary>> closed;  // destroyed without the lock
  const std::lock_guard lock(dictionaries_mutex_);
  closed.swap(dictionaries_);
}

bool Source::closed() const noexcept {
  const std::lock_guard lock(dictionaries_mutex_);
  return dictionaries_.empty();
}

std::string Source::describe(Chunk chunk) const {
  const Fragment& fragment = fragments_.at(chunk.fragment);
  return fmt::format("{}row group {}, column '{}'", fragment.file.empty() ? "" : fragment.file + ", ",
                     fragment.row_group, column_of(chunk.column).name);
}

std::vector<OwnedArray> Source::read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns) {
  std::vector<OwnedArray> arrays;
  arrays.reserve(columns.size());
  for (const std::uint32_t column : columns) arrays.push_back(read({.fragment = fragment, .column = column}));
  return arrays;
}

ArrowSource::ArrowSource(const ArrowSchema& schema, std::vector<Batch> batches)
    : Source(columns_of(schema), fragments_of(batches, schema.n_children)) {
  for (Batch& batch : batches) batches_.push_back(std::make_shared<const Batch>(std::move(batch)));
}

OwnedArray ArrowSource::read(Chunk chunk) {
  if (is_validity(chunk.column)) {
    const Chunk strings{.fragment = chunk.fragment, .column = chunk.column - validity_of(0)};
    return validity_array(read(strings), columns()[strings.column].type);
  }
  const auto& batch = batches_.at(chunk.fragment);
  ArrowArray column = *batch->array->children[chunk.column];
  if (batch->array->offset != 0 || column.length != batch->array->length) {
    column.offset += batch->array->offset;
    column.length = batch->array->length;
    if (column.null_count > 0) column.null_count = -1;
  }
  column.private_data = new Borrowed{batch};
  column.release = &release_borrowed;
  return OwnedArray(column);
}

std::vector<FileRange> ArrowSource::ranges(Chunk chunk) const {
  const Batch& batch = *batches_.at(chunk.fragment);
  if (batch.mapped == nullptr) return {};
  const std::uint32_t column = chunk.column % validity_of(0);
  const ColumnView view = view_of(*batch.array->children[column], columns()[column].type);
  std::vector<FileRange> found;
  const auto add = [&](const void* data, std::int64_t first, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(batch.mapped->data());
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(first);
    if (bytes > 0 && at >= begin && at + bytes <= begin + batch.mapped->bytes()) {
      found.push_back({.file = batch.mapped, .offset = at - begin, .bytes = bytes});
    }
  };
  add(view.values, view.offset * value_bits(view.type) / 8, buffer_bytes(view));
  if (view.validity != nullptr) {
    const ColumnView bits{
        .type = {.id = Type::boolean}, .values = view.validity, .length = view.length, .offset = view.offset};
    add(view.validity, view.offset / 8, buffer_bytes(bits));
  }
  return found;
}

ReaderSource::ReaderSource(std::vector<Column> columns, std::vector<Fragment> fragments, std::vector<ChunkPlace> places,
                           Read read)
    : Source(std::move(columns), std::move(fragments)), places_(std::move(places)), read_(std::move(read)) {
  if (places_.size() != this->columns().size() * this->fragments().size()) {
    throw UsageError("a reader's source needs exactly one place for every chunk");
  }
}

OwnedArray ReaderSource::read(Chunk chunk) {
  return std::move(read_columns(chunk.fragment, {&chunk.column, 1}).front());
}

std::optional<bool> ReaderSource::known_validity(Chunk chunk) const {
  const std::int64_t rows = fragments()[chunk.fragment].rows;
  const std::int64_t nulls = column_of(chunk.column).nullable ? place(chunk).bounds.nulls : 0;
  if (nulls == 0) return true;
  return nulls == rows ? std::optional(false) : std::nullopt;
}

std::vector<FileRange> ReaderSource::ranges(Chunk chunk) const {
  if (is_validity(chunk.column) && known_validity(chunk)) return {};
  return place(chunk).ranges;
}

std::size_t ReaderSource::read_bytes(Chunk chunk) const {
  if (is_validity(chunk.column) && known_validity(chunk)) return 0;
  return place(chunk).read_bytes;
}

std::vector<OwnedArray> ReaderSource::read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns) {
  // The columns to read: validity comes from its column of strings, unless it is known.
  std::vector<std::uint32_t> read;
  for (const std::uint32_t column : columns) {
    if (is_validity(column) && known_validity({.fragment = fragment, .column = column})) continue;
    read.push_back(column % validity_of(0));
  }
  auto arrays = read.empty() ? std::vector<OwnedArray>() : read_(fragment, read);
  if (arrays.size() != read.size()) {
    throw DataError(fmt::format("{} columns were read, but {} are expected", arrays.size(), read.size()));
  }
  if (read.size() == columns.size() && std::ranges::equal(read, columns)) return arrays;
  std::vector<OwnedArray> made;
  auto next = arrays.begin();
  for (const std::uint32_t column : columns) {
    const Chunk chunk{.fragment = fragment, .column = column};
    if (!is_validity(column)) {
      made.push_back(std::move(*next++));
    } else if (const auto known = known_validity(chunk)) {
      made.push_back(validity_array(fragments()[fragment].rows, *known));
    } else {
      made.push_back(validity_array(std::move(*next++), column_of(column).type));
    }
  }
  return made;
}

}  // namespace headrace::fetch
