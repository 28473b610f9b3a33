#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::ingest {

/// What becomes of the items of a stream on their way into a frame.
enum class Conversion : std::uint8_t {
  none,   ///< Bytes stay as they are.
  swap2,  ///< Items of 2, 4 or 8 bytes with their bytes in the other order.
  swap4,
  swap8,
  int8_to_float,   ///< Each item becomes a float of the same value.
  int16_to_float,  ///< Little-endian.
  int16_big_endian_to_float
};

[[nodiscard]] std::string_view to_string(Conversion conversion) noexcept;
/// Throws UsageError that lists the conversions.
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

/// True where items become floats.
[[nodiscard]] constexpr bool to_float(Conversion conversion) noexcept {
  return conversion == Conversion::int8_to_float || conversion == Conversion::int16_to_float ||
         conversion == Conversion::int16_big_endian_to_float;
}

/// Bytes in a frame that so many bytes of the stream, whole items, become.
[[nodiscard]] constexpr std::size_t converted_bytes(Conversion conversion, std::size_t bytes) noexcept {
  return to_float(conversion) ? bytes / item_bytes(conversion) * sizeof(float) : bytes;
}

}  // namespace headrace::ingest
