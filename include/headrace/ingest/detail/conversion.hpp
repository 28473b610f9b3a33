#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::ingest {

/// How the items of a stream are converted on their way into a frame.
enum class Conversion : std::uint8_t {
  none,   ///< Bytes stay as they are.
  swap2,  ///< Reverses the bytes of each item of 2 bytes (swap4: 4 bytes, swap8: 8 bytes).
  swap4,
  swap8,
  int8_to_float,   ///< Each item becomes a float of the same value.
  int16_to_float,  ///< The items are little-endian.
  int16_big_endian_to_float
};

[[nodiscard]] std::string_view to_string(Conversion conversion) noexcept;
/// The conversion of that name. Throws UsageError that lists the conversions if there is none.
[[nodiscard]] Conversion parse_conversion(std::string_view text);

/// Bytes of an item in the stream.
[[nodiscard]] constexpr std::uint32_t item_bytes(Conversion conversion) noexcept {
  switch (conversion) {
    case Conversion::none:
    case Conversion::int8_to_float: return 1;
    case Conversion::swap4: return 4;
    case Conversion::swap8: return 8;
    default: return 2;
  }
}

/// True if items become floats.
[[nodiscard]] constexpr bool to_float(Conversion conversion) noexcept {
  return conversion == Conversion::int8_to_float || conversion == Conversion::int16_to_float ||
         conversion == Conversion::int16_big_endian_to_float;
}

/// Bytes in a frame that `bytes` bytes of the stream, which are whole items, take after conversion.
[[nodiscard]] constexpr std::size_t converted_bytes(Conversion conversion, std::size_t bytes) noexcept {
  return to_float(conversion) ? bytes / item_bytes(conversion) * sizeof(float) : bytes;
}

}  // namespace headrace::ingest
