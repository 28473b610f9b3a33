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

/// Statistics of a column in a row group, as a Parquet file states them.
struct ParquetStatistics {
  int physical_type = -1;                    ///< The format's number of the type.
  std::optional<std::string> least = {};     ///< Plain-encoded; set only if the file states how values are ordered.
  std::optional<std::string> greatest = {};  ///< As `least`.
  std::optional<std::int64_t> nulls = {};
};

/// Location of a row group's column in a Parquet file, limited to the bytes of the file.
struct ParquetChunk {
  std::string path;       ///< Path in the schema, joined with dots, which names may contain as well.
  std::size_t depth = 0;  ///< Names in the path: 1 for a column of the table, more for a nested field.
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t decoded_bytes = 0;  ///< Uncompressed bytes of its pages.
  bool delta_strings = false;     ///< Pages may be encoded as DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY.
  ParquetStatistics statistics = {};
};

struct ParquetRowGroup {
  std::int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< Without encrypted chunks, which have no plain metadata.
};

/// Reads the row groups of a Parquet file from its footer (https://parquet.apache.org/docs/file-format/metadata/). It
/// reads and trusts nothing else of the file. Throws DataError, which does not name the file, if the footer is damaged.
[[nodiscard]] std::vector<ParquetRowGroup> read_parquet_footer(std::span<const std::byte> file);

/// The bounds that statistics give for a chunk of `rows` rows. `type` must match the file's type (the same scale for a
/// decimal, the same unit for a timestamp). Contradictory statistics give no bounds.
[[nodiscard]] ChunkBounds bounds_of(const ParquetStatistics& statistics, const DataType& type, std::int64_t rows);

/// A column of a table that is stored in a Parquet file.
struct ParquetColumn {
  std::string path;           ///< Its name.
  DataType type;              ///< The type in which it is read.
  std::size_t row_bytes = 0;  ///< Upper bound on the bytes of a decoded value with its validity.
  bool is_text = false;       ///< Reading it also decodes the strings of its pages.
  bool comparable = false;    ///< The statistics describe the values exactly as they are read.
};

/// Locations of the chunks of these columns, column by column within a row group. A column that a row group lacks has
/// no ranges.
[[nodiscard]] std::vector<ReaderSource::ChunkPlace> places_of(const std::shared_ptr<const MappedFile>& file,
                                                              std::span<const ParquetRowGroup> groups,
                                                              std::span<const ParquetColumn> columns);

}  // namespace headrace::fetch
