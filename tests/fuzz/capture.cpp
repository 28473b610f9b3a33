#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/base/error.hpp"
#include "ingest/sources/capture_reader.hpp"

/// For any bytes, the packets lie within them and come in order, up to the end or to the place that a DataError names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace::ingest;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::byte* last = bytes.data();
  unsigned sum = 0;
  try {
    CaptureReader reader{CaptureInput(bytes), "fuzz"};
    while (const auto record = reader.next()) {
      if (record->bytes.data() < last || record->bytes.size() > kCapturedMost) __builtin_trap();
      last = record->bytes.data() + record->bytes.size();
      if (last > bytes.data() + bytes.size() || record->offset >= size) __builtin_trap();
      for (const std::byte one : record->bytes) sum += std::to_integer<unsigned>(one);
    }
  } catch (const headrace::DataError&) {
    return 0;
  }
  return sum == 0xFFFFFFFF ? 1 : 0;
}
