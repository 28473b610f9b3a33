#include "headrace/base/detail/bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/error.hpp"

/// parse_bytes() either returns a size that format_bytes() can print, or throws a UsageError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (headrace::format_bytes(headrace::parse_bytes(text)).empty()) __builtin_trap();
  } catch (const headrace::UsageError&) {
    return 0;
  }
  return 0;
}
