#include "headrace/fetch/parquet_footer.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/fetch/column.hpp"

namespace {

void read(const std::vector<std::byte>& file) {
  try {
    for (const auto& group : headrace::fetch::read_parquet_footer(file)) {
      if (group.rows < 0 || group.rows > headrace::fetch::kTableRowsMax) __builtin_trap();
      for (const auto& chunk : group.chunks) {
        if (chunk.offset > file.size() || chunk.bytes > file.size() - chunk.offset) __builtin_trap();
      }
    }
  } catch (const headrace::DataError&) {  // said so
  }
}

}  // namespace

/// Any bytes are either row groups that lie in them, or a DataError: as a file, and as a file's footer.
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
