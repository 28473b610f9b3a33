#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headrace::fetch {

/// Where a Parquet file has a column of a row group. A part that lies outside of the file is left out.
struct ParquetChunk {
  std::string path;  ///< In the schema, with dots.
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t decoded_bytes = 0;  ///< Of its pages, without compression.
};

struct ParquetRowGroup {
  std::int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< But for those that say nothing of themselves, because they are encrypted.
};

/// The row groups of a Parquet file by its footer (https://parquet.apache.org/docs/file-format/metadata/), of which
/// nothing else is read or believed. Throws DataError, which does not name the file, for a footer that is damaged.
[[nodiscard]] std::vector<ParquetRowGroup> read_parquet_footer(std::span<const std::byte> file);

}  // namespace headrace::fetch
