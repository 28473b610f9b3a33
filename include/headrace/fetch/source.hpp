#pragma once

// A Source is a table that can be read chunk by chunk, one column of one fragment at a time, from whatever stores it.
//
//     struct Readings : headrace::fetch::Source {
//       Readings() : Source({{.name = "volts", .type = {.id = headrace::fetch::Type::float32}}}, {{.rows = 1000}}) {}
//       headrace::fetch::OwnedArray read(headrace::fetch::Chunk chunk) override { return decode(chunk); }
//       std::vector<headrace::fetch::FileRange> ranges(headrace::fetch::Chunk) const override { return {}; }
//       std::size_t read_bytes(headrace::fetch::Chunk) const override { return 1000 * sizeof(float); }
//       static headrace::fetch::OwnedArray decode(headrace::fetch::Chunk chunk);  // your reader: 1000 values
//     };

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/detail/dictionary.hpp"
#include "headrace/fetch/detail/mapped_file.hpp"

namespace headrace::fetch {

/// A column of a table.
struct Column {
  std::string name;
  DataType type;  ///< A dictionary's is as the source gives it. On every level its indices are int32.
  bool nullable = true;
  bool large_strings = false;  ///< The entries of a dictionary have 64-bit offsets.
};

/// Rows that every column has in one piece: a row group of a Parquet file, a record batch.
struct Fragment {
  std::string file = {};  ///< Where it comes from, for errors; empty for memory.
  std::int64_t row_group = 0;
  std::int64_t rows = 0;
  std::shared_ptr<const MappedFile> mapped = {};  ///< The file; null for memory.
};

/// One column of one fragment.
struct Chunk {
  std::uint32_t fragment = 0;
  std::uint32_t column = 0;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// What is known of the values of a chunk before it is read. Wider than they are is allowed.
struct ChunkBounds {
  /// In the terms of Expression::literal(). Of floats no value is below `least`, and `greatest` is NaN, which is above
  /// all: files do not say whether there is one.
  std::optional<ValueRange> range = {};
  std::optional<std::pair<std::string, std::string>> strings = {};  ///< The bounds of a column of strings, by bytes.
  std::int64_t nulls = -1;                                          ///< How many values are missing; -1: not known.
};

/// Bytes of a file.
struct FileRange {
  std::shared_ptr<const MappedFile> file;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// A table that can be read chunk by chunk. All functions are called from any thread, several at once.
///
/// A chunk's column is one of columns(), or validity_of() one of strings: a column of booleans that has a value, false
/// or true, where the strings have one. Whoever counts strings needs no more, and so no dictionary.
class Source {
 public:
  /// Throws UsageError for a table without columns, or with two of one name.
  Source(std::vector<Column> columns, std::vector<Fragment> fragments);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
  [[nodiscard]] const std::vector<Fragment>& fragments() const noexcept { return fragments_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  /// Different for every source of the process.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// What the indices of a column of strings stand for; null for other columns. Throws UsageError once it is closed.
  [[nodiscard]] std::shared_ptr<Dictionary> dictionary(std::uint32_t column) const;
  /// Lets go of the dictionaries: nothing can be fetched any more, and what has been stays with whoever holds it.
  void close() noexcept;
  [[nodiscard]] bool closed() const noexcept;

  [[nodiscard]] std::uint32_t validity_of(std::uint32_t column) const noexcept {
    return static_cast<std::uint32_t>(columns_.size()) + column;
  }
  [[nodiscard]] bool is_validity(std::uint32_t column) const noexcept { return column >= columns_.size(); }
  /// The column of a chunk, or that which its validity is of.
  [[nodiscard]] const Column& column_of(std::uint32_t column) const {
    return columns_.at(is_validity(column) ? column - columns_.size() : column);
  }
  /// The type of a chunk's values.
  [[nodiscard]] DataType type_of(std::uint32_t column) const {
    return is_validity(column) ? DataType{.id = Type::boolean} : columns_.at(column).type;
  }

  /// The chunk as an array of its column's type and its fragment's rows. Throws an Exception that says what is wrong;
  /// the caller adds where.
  [[nodiscard]] virtual OwnedArray read(Chunk chunk) = 0;
  /// The chunks of some columns of a fragment, in that order: read() of each, unless a source has a faster way. What it
  /// throws says nothing of which column is wrong; read() does.
  [[nodiscard]] virtual std::vector<OwnedArray> read_columns(std::uint32_t fragment,
                                                             std::span<const std::uint32_t> columns);
  /// The bytes of files that read() needs; empty where it needs none.
  [[nodiscard]] virtual std::vector<FileRange> ranges(Chunk chunk) const = 0;
  /// Memory that read() takes for its array, at most; 0 where the array lies in memory or a mapped file already.
  [[nodiscard]] virtual std::size_t read_bytes(Chunk chunk) const = 0;

  /// What is known of the chunk's values; null where nothing is.
  [[nodiscard]] virtual const ChunkBounds* bounds(Chunk /*chunk*/) const { return nullptr; }

  /// Throws DataError that names the file when one of the fragment, or any, has changed since it was opened: whoever
  /// has read of it, or relies on what it says of itself, asks afterwards.
  void require_unchanged(std::uint32_t fragment) const;
  void require_unchanged() const;

  /// "data.parquet, row group 3, column 'fare'".
  [[nodiscard]] std::string describe(Chunk chunk) const;

 private:
  std::vector<Column> columns_;
  std::vector<Fragment> fragments_;
  mutable std::mutex dictionaries_mutex_;
  std::vector<std::shared_ptr<Dictionary>> dictionaries_;  ///< By column, null but for strings; empty: it is closed.
  std::int64_t rows_ = 0;
  std::uint64_t id_;
};

/// Record batches that lie in memory: given by any Arrow producer, or of a mapped Arrow IPC file. Nothing is copied.
class ArrowSource final : public Source {
 public:
  struct Batch {
    OwnedArray array;  ///< A struct array: a child for each column.
    std::string file = {};
    std::int64_t number = 0;                        ///< In the file.
    std::shared_ptr<const MappedFile> mapped = {};  ///< Where its buffers lie, if in a file.
  };
  /// Takes the batches over. Throws UsageError (columns of a type that is not known, named), DataError (batches that do
  /// not have the schema's columns, or rows that are null as a whole).
  ArrowSource(const ArrowSchema& schema, std::vector<Batch> batches);

  [[nodiscard]] OwnedArray read(Chunk chunk) override;
  [[nodiscard]] std::vector<FileRange> ranges(Chunk chunk) const override;
  [[nodiscard]] std::size_t read_bytes(Chunk /*chunk*/) const override { return 0; }

 private:
  std::vector<std::shared_ptr<const Batch>> batches_;
};

/// A source whose chunks a function reads, such as one that decodes files.
class ReaderSource final : public Source {
 public:
  /// Some columns of a fragment, in that order.
  using Read = std::function<std::vector<OwnedArray>(std::uint32_t fragment, std::span<const std::uint32_t> columns)>;
  struct ChunkPlace {
    std::vector<FileRange> ranges;
    std::size_t read_bytes = 0;
    ChunkBounds bounds = {};
  };
  /// @param places  of each chunk, column by column within a fragment.
  /// Throws as Source does, and UsageError for another number of places.
  ReaderSource(std::vector<Column> columns, std::vector<Fragment> fragments, std::vector<ChunkPlace> places, Read read);

  [[nodiscard]] OwnedArray read(Chunk chunk) override;
  [[nodiscard]] std::vector<OwnedArray> read_columns(std::uint32_t fragment,
                                                     std::span<const std::uint32_t> columns) override;
  [[nodiscard]] std::vector<FileRange> ranges(Chunk chunk) const override;
  [[nodiscard]] std::size_t read_bytes(Chunk chunk) const override;
  [[nodiscard]] const ChunkBounds* bounds(Chunk chunk) const override { return &place(chunk).bounds; }

 private:
  [[nodiscard]] const ChunkPlace& place(Chunk chunk) const {
    return places_.at(chunk.fragment * columns().size() + chunk.column % columns().size());
  }
  /// Whether all values of a chunk, or none, are there, as far as that is known without reading it.
  [[nodiscard]] std::optional<bool> known_validity(Chunk chunk) const;
  std::vector<ChunkPlace> places_;
  Read read_;
};

}  // namespace headrace::fetch
