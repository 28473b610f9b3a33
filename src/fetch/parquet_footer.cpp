#include "fetch/parquet_footer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "fetch/thrift.hpp"
#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

namespace {

using Field = ThriftReader::Type;

constexpr std::string_view kMagic = "PAR1";
/// Numbers of encodings, from https://github.com/apache/parquet-format/blob/master/Encodings.md.
constexpr std::int64_t kDeltaLengthByteArray = 6;
constexpr std::int64_t kDeltaByteArray = 7;

/// A column's metadata as the file states it, unchecked.
struct Said {
  std::string path;
  std::size_t depth = 0;
  bool delta_strings = false;
  std::int64_t decoded_bytes = 0;
  std::int64_t bytes = 0;
  std::int64_t data_at = 0;
  std::int64_t dictionary_at = 0;
  ParquetStatistics statistics;
};

/// Reads the field into `to` if it is a number.
bool read_number(ThriftReader& reader, Field type, std::int64_t& to) {
  if (type != Field::int64 && type != Field::int32) return false;
  to = reader.integer();
  return true;
}

/// Skips the fields min and max of older files, whose sort order is undefined.
void read_statistics(ThriftReader& reader, ParquetStatistics& to) {
  reader.each_field([&](std::int16_t number, Field type) {
    if (number == 3) {
      std::int64_t nulls = 0;
      if (!read_number(reader, type, nulls)) return false;
      to.nulls = nulls;
      return true;
    }
    if ((number != 5 && number != 6) || type != Field::binary) return false;
    (number == 5 ? to.greatest : to.least) = std::string(reader.binary());
    return true;
  });
}

Said read_column(ThriftReader& reader) {
  Said said;
  reader.each_field([&](std::int16_t number, Field type) {
    switch (number) {
      case 1: {
        std::int64_t physical = -1;
        if (!read_number(reader, type, physical)) return false;
        said.statistics.physical_type = physical >= 0 && physical < 8 ? static_cast<int>(physical) : -1;
        return true;
      }
      case 2:
        if (type != Field::list) return false;
        reader.each_item(Field::int32, [&] {
          const std::int64_t encoding = reader.integer();
          said.delta_strings |= encoding == kDeltaLengthByteArray || encoding == kDeltaByteArray;
        });
        return true;
      case 12:
        if (type != Field::structure) return false;
        read_statistics(reader, said.statistics);
        return true;
      case 3:
        if (type != Field::list) return false;
        reader.each_item(Field::binary, [&] {
          if (said.depth++ > 0) said.path += '.';
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

/// The chunk that a column's metadata describes, limited to the bytes of the file.
ParquetChunk placed(Said&& said, std::size_t file_bytes) {
  // A dictionary page comes before the data pages; an offset of 0 means that there is none.
  const bool dictionary_first = said.dictionary_at > 0 && (said.data_at <= 0 || said.dictionary_at < said.data_at);
  const std::int64_t first = dictionary_first ? said.dictionary_at : said.data_at;
  const auto offset = std::min(static_cast<std::size_t>(std::max<std::int64_t>(first, 0)), file_bytes);
  return {.path = std::move(said.path),
          .depth = said.depth,
          .offset = offset,
          .bytes = std::min(static_cast<std::size_t>(std::max<std::int64_t>(said.bytes, 0)), file_bytes - offset),
          .decoded_bytes = static_cast<std::size_t>(std::max<std::int64_t>(said.decoded_bytes, 0)),
          .delta_strings = said.delta_strings,
          .statistics = std::move(said.statistics)};
}

/// A row group, and the column number of each of its chunks.
struct NumberedGroup {
  ParquetRowGroup group;
  std::vector<std::size_t> numbers;
};

NumberedGroup read_row_group(ThriftReader& reader, std::size_t file_bytes) {
  NumberedGroup read;
  ParquetRowGroup& group = read.group;
  std::size_t column = 0;
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
      if (said) {
        group.chunks.push_back(placed(*std::move(said), file_bytes));
        read.numbers.push_back(column);
      }
      ++column;
    });
    return true;
  });
  return read;
}

/// Reads whether each column has the order that its type defines, the only order that the format has so far.
std::vector<bool> read_orders(ThriftReader& reader) {
  std::vector<bool> orders;
  reader.each_item(Field::structure, [&] {
    bool by_type = false;
    reader.each_field([&](std::int16_t number, Field /*type*/) {
      by_type = number == 1;
      return false;
    });
    orders.push_back(by_type);
  });
  return orders;
}

std::span<const std::byte> footer_of(std::span<const std::byte> file) {
  constexpr std::size_t tail = sizeof(std::uint32_t) + kMagic.size();
  if (file.size() < kMagic.size() + tail || std::memcmp(file.last(kMagic.size()).data(), kMagic.data(), 4) != 0) {
    throw DataError("the file does not end with a Parquet footer; it may have been cut short");
  }
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, file.last(tail).data(), sizeof(bytes));
  if (bytes > file.size() - kMagic.size() - tail) {
    throw DataError(fmt::format("its footer of {} bytes does not fit in the file; it may have been cut short", bytes));
  }
  return file.last(tail + bytes).first(bytes);
}

}  // namespace

std::vector<ParquetRowGroup> read_parquet_footer(std::span<const std::byte> file) {
  ThriftReader reader(footer_of(file));
  std::vector<ParquetRowGroup> groups;
  std::vector<NumberedGroup> read;
  std::vector<bool> orders;
  try {
    reader.each_field([&](std::int16_t number, Field type) {
      if ((number != 4 && number != 7) || type != Field::list) return false;
      if (number == 7) {
        orders = read_orders(reader);
      } else {
        reader.each_item(Field::structure, [&] { read.push_back(read_row_group(reader, file.size())); });
      }
      return true;
    });
  } catch (const DataError& error) {
    throw DataError(fmt::format("its footer is damaged: {}", error.what()));
  }
  for (NumberedGroup& one : read) {
    for (std::size_t c = 0; c < one.numbers.size(); ++c) {
      const std::size_t column = one.numbers[c];
      ParquetStatistics& statistics = one.group.chunks[c].statistics;
      if (column < orders.size() && orders[column]) continue;
      statistics.least.reset();
      statistics.greatest.reset();
    }
    groups.push_back(std::move(one.group));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].rows < 0 || groups[i].rows > kTableRowsMax) {
      throw DataError(fmt::format("its footer is damaged: row group {} has {} rows", i, groups[i].rows));
    }
  }
  return groups;
}

}  // namespace headrace::fetch
