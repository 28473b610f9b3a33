#include "fetch/parquet_footer.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/fetch/detail/column.hpp"

namespace {

using headrace::fetch::bounds_of;
using headrace::fetch::ParquetStatistics;
using headrace::fetch::Type;

/// Bounds are in order, whatever the file claims.
void use(const ParquetStatistics& statistics, std::int64_t rows) {
  constexpr std::array types{Type::boolean, Type::int8, Type::uint32, Type::uint64, Type::timestamp, Type::decimal128};
  for (const Type type : types) {
    const auto bounds = bounds_of(statistics, {.id = type}, rows);
    if (bounds.nulls > rows) __builtin_trap();
    if (bounds.range && bounds.range->least > bounds.range->greatest) __builtin_trap();
  }
  static_cast<void>(bounds_of(statistics, {.id = Type::float32}, rows));
  const auto strings = bounds_of(statistics, {.id = Type::dictionary}, rows).strings;
  if (strings && strings->second < strings->first) __builtin_trap();
}

void read(const std::vector<std::byte>& file) {
  try {
    for (const auto& group : headrace::fetch::read_parquet_footer(file)) {
      if (group.rows < 0 || group.rows > headrace::fetch::kTableRowsMax) __builtin_trap();
      for (const auto& chunk : group.chunks) {
        if (chunk.offset > file.size() || chunk.bytes > file.size() - chunk.offset) __builtin_trap();
        use(chunk.statistics, group.rows);
      }
    }
  } catch (const headrace::DataError&) {  // reported
  }
}

}  // namespace

/// Any bytes, as a file and as a file's footer, are either row groups that lie within them or a DataError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> file(size);
  if (size != 0) std::memcpy(file.data(), data, size);
  read(file);
  const auto bytes = static_cast<std::uint32_t>(size);
  const std::size_t at = file.size();
  file.insert(file.begin(), 4, std::byte{'P'});
  file.resize(at + 12);
  std::memcpy(file.data() + at + 4, &bytes, sizeof(bytes));
  std::memcpy(file.data() + at + 8, "PAR1", 4);
  read(file);
  return 0;
}
