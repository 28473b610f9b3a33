#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// What a Parquet file says of the values of a column of a row group, as it says it.
struct ParquetStatistics {
  int physical_type = -1;                    ///< By the number that the format gives it.
  std::optional<std::string> least = {};     ///< Plain-encoded, and only where the file says how values are ordered.
  std::optional<std::string> greatest = {};  ///< The same.
  std::optional<std::int64_t> nulls = {};
};

/// Where a Parquet file has a column of a row group. A part that lies outside of the file is left out.
struct ParquetChunk {
  std::string path;       ///< In the schema, with dots, which names may have as well.
  std::size_t depth = 0;  ///< Names that the path has: 1 for a column of the table, more for a field within one.
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t decoded_bytes = 0;  ///< Bytes of its pages without compression.
  bool delta_strings = false;     ///< Pages may be encoded as DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY.
  ParquetStatistics statistics = {};
};

struct ParquetRowGroup {
  std::int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< But for those that say nothing of themselves, because they are encrypted.
};

/// The row groups of a Parquet file by its footer (https://parquet.apache.org/docs/file-format/metadata/), of which
/// nothing else is read or believed. Throws DataError, which does not name the file, for a footer that is damaged.
[[nodiscard]] std::vector<ParquetRowGroup> read_parquet_footer(std::span<const std::byte> file);

/// What statistics say of a chunk of so many rows whose values are of that type as they are in the file (a decimal's of
/// the same scale, a timestamp's of the same unit). Statistics that contradict themselves say nothing.
[[nodiscard]] ChunkBounds bounds_of(const ParquetStatistics& statistics, const DataType& type, std::int64_t rows);

/// A column of a table, as it is in a Parquet file.
struct ParquetColumn {
  std::string path;           ///< Its name.
  DataType type;              ///< In which it is read.
  std::size_t row_bytes = 0;  ///< Bytes that a decoded value takes with its validity, at most.
  bool is_text = false;       ///< Its pages' strings are decoded as well.
  bool comparable = false;    ///< Statistics are of the very values that are read.
};

/// Where the chunks of those columns lie, column by column within a row group. A column that a row group has not lies
/// nowhere.
[[nodiscard]] std::vector<ReaderSource::ChunkPlace> places_of(const std::shared_ptr<const MappedFile>& file,
                                                              std::span<const ParquetRowGroup> groups,
                                                              std::span<const ParquetColumn> columns);

}  // namespace headrace::fetch
