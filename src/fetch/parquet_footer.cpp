#include "headrace/fetch/parquet_footer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "fetch/thrift.hpp"
#include "headrace/fetch/column.hpp"

namespace headrace::fetch {

namespace {

using Field = ThriftReader::Type;

constexpr std::string_view kMagic = "PAR1";

/// A column's metadata, as it says.
struct Said {
  std::string path;
  std::int64_t decoded_bytes = 0;
  std::int64_t bytes = 0;
  std::int64_t data_at = 0;
  std::int64_t dictionary_at = 0;
};

/// Reads a number into `to` where the field is one.
bool read_number(ThriftReader& reader, Field type, std::int64_t& to) {
  if (type != Field::int64 && type != Field::int32) return false;
  to = reader.integer();
  return true;
}

Said read_column(ThriftReader& reader) {
  Said said;
  reader.each_field([&](std::int16_t number, Field type) {
    switch (number) {
      case 3:
        if (type != Field::list) return false;
        reader.each_item(Field::binary, [&] {
          if (!said.path.empty()) said.path += '.';
          said.path += reader.binary();
        });
        return true;
      case 6: return read_number(reader, type, said.decoded_bytes);
      case 7: return read_number(reader, type, said.bytes);
      case 9: return read_number(reader, type, said.data_at);
      case 11: return read_number(reader, type, said.dictionary_at);
      default: return false;
    }
  });
  return said;
}

/// The part of what a column says that lies in the file.
ParquetChunk placed(Said&& said, std::size_t file_bytes) {
  // A dictionary comes first, and a place of 0 is none.
  const bool dictionary_first = said.dictionary_at > 0 && (said.data_at <= 0 || said.dictionary_at < said.data_at);
  const std::int64_t first = dictionary_first ? said.dictionary_at : said.data_at;
  const auto offset = std::min(static_cast<std::size_t>(std::max<std::int64_t>(first, 0)), file_bytes);
  return {.path = std::move(said.path),
          .offset = offset,
          .bytes = std::min(static_cast<std::size_t>(std::max<std::int64_t>(said.bytes, 0)), file_bytes - offset),
          .decoded_bytes = static_cast<std::size_t>(std::max<std::int64_t>(said.decoded_bytes, 0))};
}

ParquetRowGroup read_row_group(ThriftReader& reader, std::size_t file_bytes) {
  ParquetRowGroup group;
  reader.each_field([&](std::int16_t number, Field type) {
    if (number == 3) return read_number(reader, type, group.rows);
    if (number != 1 || type != Field::list) return false;
    reader.each_item(Field::structure, [&] {
      std::optional<Said> said;
      reader.each_field([&](std::int16_t of_chunk, Field kind) {
        if (of_chunk != 3 || kind != Field::structure) return false;
        said = read_column(reader);
        return true;
      });
      if (said) group.chunks.push_back(placed(*std::move(said), file_bytes));
    });
    return true;
  });
  return group;
}

std::span<const std::byte> footer_of(std::span<const std::byte> file) {
  constexpr std::size_t tail = sizeof(std::uint32_t) + kMagic.size();
  if (file.size() < kMagic.size() + tail || std::memcmp(file.last(kMagic.size()).data(), kMagic.data(), 4) != 0) {
    throw DataError("it does not end as a Parquet file does: it may have been cut short");
  }
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, file.last(tail).data(), sizeof(bytes));
  if (bytes > file.size() - kMagic.size() - tail) {
    throw DataError(fmt::format("its footer of {} bytes is larger than the file: it may have been cut short", bytes));
  }
  return file.last(tail + bytes).first(bytes);
}

}  // namespace

std::vector<ParquetRowGroup> read_parquet_footer(std::span<const std::byte> file) {
  ThriftReader reader(footer_of(file));
  std::vector<ParquetRowGroup> groups;
  try {
    reader.each_field([&](std::int16_t number, Field type) {
      if (number != 4 || type != Field::list) return false;
      reader.each_item(Field::structure, [&] { groups.push_back(read_row_group(reader, file.size())); });
      return true;
    });
  } catch (const DataError& error) {
    throw DataError(fmt::format("its footer is damaged: {}", error.what()));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].rows < 0 || groups[i].rows > kTableRowsMax) {
      throw DataError(fmt::format("its footer is damaged: row group {} of {} rows", i, groups[i].rows));
    }
  }
  return groups;
}

}  // namespace headrace::fetch
