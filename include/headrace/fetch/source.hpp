#pragma once

// A Source is a table that can be read chunk by chunk, one column of one fragment at a time, from any kind of storage.
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
  std::string name;            ///< Unique within the table.
  DataType type;               ///< The type as the source stores it. Levels store a dictionary's indices as int32.
  bool nullable = true;        ///< Whether values may be missing.
  bool large_strings = false;  ///< The entries of a dictionary have 64-bit offsets.
};

/// Rows that every column has in one piece: a row group of a Parquet file, a record batch.
struct Fragment {
  std::string file = {};                          ///< The file's name, for errors; empty for memory.
  std::int64_t row_group = 0;                     ///< Its number in the file, from 0.
  std::int64_t rows = 0;                          ///< Rows.
  std::shared_ptr<const MappedFile> mapped = {};  ///< The file; null for memory.
};

/// One column of one fragment.
struct Chunk {
  std::uint32_t fragment = 0;  ///< The number of the fragment.
  std::uint32_t column = 0;    ///< The number of the column, or Source::validity_of() it.
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// Facts about the values of a chunk that are known before it is read. Bounds may be wider than the values.
struct ChunkBounds {
  /// The bounds, as Expression::literal() takes values. For floats `greatest` is NaN, which is above all others,
  /// because files do not state whether there is a NaN.
  std::optional<ValueRange> range = {};
  std::optional<std::pair<std::string, std::string>> strings = {};  ///< Bounds of strings, compared by bytes.
  std::int64_t nulls = -1;                                          ///< Number of missing values; -1: not known.
};

/// Bytes of a file.
struct FileRange {
  std::shared_ptr<const MappedFile> file;  ///< The file.
  std::size_t offset = 0;                  ///< Position of the first byte.
  std::size_t bytes = 0;                   ///< Number of bytes.
};

/// A table that can be read chunk by chunk. All functions are called from any thread, several at once.
///
/// A chunk's column is one of columns(), or validity_of() one of strings: a column of booleans that is missing where
/// the strings are. Counting strings needs no more than that, and so no dictionary.
class Source {
 public:
  /// Throws UsageError for a table without columns, or with two of one name.
  Source(std::vector<Column> columns, std::vector<Fragment> fragments);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// The columns of the table.
  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
  /// The fragments of the table, in the order of their rows.
  [[nodiscard]] const std::vector<Fragment>& fragments() const noexcept { return fragments_; }
  /// Rows of all fragments together.
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  /// A number that no other source of the process has.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// The dictionary of a column of strings; null for other columns. Throws UsageError once the source is closed.
  [[nodiscard]] std::shared_ptr<Dictionary> dictionary(std::uint32_t column) const;
  /// Releases the dictionaries. Nothing can be fetched from then on; results that hold a dictionary keep it.
  void close() noexcept;
  /// True after close().
  [[nodiscard]] bool closed() const noexcept;

  /// The number that stands for the validity of a column of strings in Chunk::column.
  [[nodiscard]] std::uint32_t validity_of(std::uint32_t column) const noexcept {
    return static_cast<std::uint32_t>(columns_.size()) + column;
  }
  /// True for a number that validity_of() returned.
  [[nodiscard]] bool is_validity(std::uint32_t column) const noexcept { return column >= columns_.size(); }
  /// The column of a chunk, or the one whose validity it is. Throws std::out_of_range for any other number.
  [[nodiscard]] const Column& column_of(std::uint32_t column) const {
    return columns_.at(is_validity(column) ? column - columns_.size() : column);
  }
  /// The type of a chunk's values.
  [[nodiscard]] DataType type_of(std::uint32_t column) const {
    return is_validity(column) ? DataType{.id = Type::boolean} : columns_.at(column).type;
  }

  /// Reads the chunk as an array of its column's type and its fragment's rows. Throws an Exception that says what is
  /// wrong; the caller adds where.
  [[nodiscard]] virtual OwnedArray read(Chunk chunk) = 0;
  /// Reads the chunks of some columns of a fragment, in that order. Calls read() for each, unless the source has a
  /// faster way. An exception from read_columns() does not say which column is wrong; one from read() does.
  [[nodiscard]] virtual std::vector<OwnedArray> read_columns(std::uint32_t fragment,
                                                             std::span<const std::uint32_t> columns);
  /// The bytes of files that read() needs; empty if it needs none.
  [[nodiscard]] virtual std::vector<FileRange> ranges(Chunk chunk) const = 0;
  /// Most bytes that read() allocates for its array; 0 if the array is in memory or a mapped file already.
  [[nodiscard]] virtual std::size_t read_bytes(Chunk chunk) const = 0;

  /// What is known of the chunk's values; null if nothing is. Valid while the source lives.
  [[nodiscard]] virtual const ChunkBounds* bounds(Chunk /*chunk*/) const { return nullptr; }

  /// Throws DataError that names the fragment's file if it has changed since it was opened. Call it after reading from
  /// the file or relying on its metadata.
  void require_unchanged(std::uint32_t fragment) const;
  /// The same for the files of all fragments.
  void require_unchanged() const;

  /// "data.parquet, row group 3, column 'fare'".
  [[nodiscard]] std::string describe(Chunk chunk) const;

 private:
  std::vector<Column> columns_;
  std::vector<Fragment> fragments_;
  mutable std::mutex dictionaries_mutex_;
  std::vector<std::shared_ptr<Dictionary>> dictionaries_;  ///< By column; null except for strings. Empty once closed.
  std::int64_t rows_ = 0;
  std::uint64_t id_;
};

/// Record batches in memory, from any Arrow producer or a mapped Arrow IPC file. Nothing is copied.
class ArrowSource final : public Source {
 public:
  /// A record batch, and where it comes from.
  struct Batch {
    OwnedArray array;                               ///< A struct array: a child for each column.
    std::string file = {};                          ///< The file's name, for errors; empty for memory.
    std::int64_t number = 0;                        ///< In the file.
    std::shared_ptr<const MappedFile> mapped = {};  ///< Where its buffers lie, if in a file.
  };
  /// Takes ownership of the batches. Throws UsageError, naming the column, for an unsupported type; DataError for
  /// batches that do not have the schema's columns, or have rows that are null as a whole.
  ArrowSource(const ArrowSchema& schema, std::vector<Batch> batches);

  [[nodiscard]] OwnedArray read(Chunk chunk) override;
  [[nodiscard]] std::vector<FileRange> ranges(Chunk chunk) const override;
  [[nodiscard]] std::size_t read_bytes(Chunk /*chunk*/) const override { return 0; }

 private:
  std::vector<std::shared_ptr<const Batch>> batches_;
};

/// A source whose chunks are read by a function, such as one that decodes files.
class ReaderSource final : public Source {
 public:
  /// Reads some columns of a fragment, in that order.
  using Read = std::function<std::vector<OwnedArray>(std::uint32_t fragment, std::span<const std::uint32_t> columns)>;
  /// What reading a chunk needs, and the facts that are known about it.
  struct ChunkPlace {
    std::vector<FileRange> ranges;  ///< As Source::ranges().
    std::size_t read_bytes = 0;     ///< As Source::read_bytes().
    ChunkBounds bounds = {};        ///< As Source::bounds().
  };
  /// Makes a source whose chunks `read` reads.
  /// @param places  one for each chunk, column by column within a fragment.
  ///
  /// Throws as Source does, and UsageError for any other number of places.
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
  /// True if all values of a chunk are present, false if all are missing; empty if that is not known without reading
  /// it.
  [[nodiscard]] std::optional<bool> known_validity(Chunk chunk) const;
  std::vector<ChunkPlace> places_;
  Read read_;
};

}  // namespace headrace::fetch
