#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// Columns in memory, in the layout of Arrow's C data interface, so that the buffers of any Arrow producer can be used
/// unchanged (https://arrow.apache.org/docs/format/Columnar.html).
namespace headrace::fetch {

enum class Type : std::uint8_t {
  boolean,  ///< One bit per value, least significant bit first.
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  date32,      ///< Days since 1970-01-01, 32 bits, signed.
  timestamp,   ///< Units since 1970-01-01 00:00 UTC, 64 bits, signed.
  decimal128,  ///< 128 bits, signed, in units of 10^-scale.
  /// Indices into a dictionary of strings. The dictionary stays on the host. A table has one dictionary for all
  /// fragments of a column, so that equal indices are equal strings.
  dictionary,
};

enum class TimeUnit : std::uint8_t { second, millisecond, microsecond, nanosecond };

/// A type with its parameters. Parameters that a type does not have keep these defaults, so that equal types compare
/// equal.
struct DataType {
  Type id = Type::int64;
  TimeUnit unit = TimeUnit::second;  ///< A timestamp's unit.
  std::uint8_t precision = 0;        ///< A decimal128's digits, 1 to 38.
  std::int8_t scale = 0;             ///< A decimal128's digits after the point.
  Type index = Type::int32;          ///< The integer type of a dictionary's indices.
  friend bool operator==(const DataType&, const DataType&) = default;
};

/// Bits of one value in the values buffer.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t value_bits(Type type) noexcept {
  switch (type) {
    case Type::boolean: return 1;
    case Type::int8:
    case Type::uint8: return 8;
    case Type::int16:
    case Type::uint16: return 16;
    case Type::int32:
    case Type::uint32:
    case Type::float32:
    case Type::date32:
    case Type::dictionary: return 32;  // with the default index; see value_bits(DataType)
    case Type::int64:
    case Type::uint64:
    case Type::float64:
    case Type::timestamp: return 64;
    case Type::decimal128: return 128;
  }
  return 0;
}

[[nodiscard]] HEADRACE_HD constexpr std::uint32_t value_bits(const DataType& type) noexcept {
  return value_bits(type.id == Type::dictionary ? type.index : type.id);
}

/// Bytes that `length` values of a type take.
[[nodiscard]] HEADRACE_HD constexpr std::int64_t values_bytes(const DataType& type, std::int64_t length) noexcept {
  return (length * value_bits(type) + 7) / 8;
}

/// Most rows of a table, and the highest offset of a column in its buffers. 64 bits can count the bits of twice as many
/// values.
inline constexpr std::int64_t kTableRowsMax = std::int64_t{1} << 48;

/// The least and greatest value of a column, in the form of Expression::literal(). The range may be wider than the
/// values.
struct ValueRange {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
};

/// A fragment of a column, borrowed. Value i is at position offset + i of both buffers. On a device, buffers must start
/// at 16-byte boundaries and be readable up to the next such boundary after their last byte, as Headrace's Buffers are.
struct ColumnView {
  DataType type;
  const void* values = nullptr;
  /// One bit per value, least significant bit first; 1 means that the value is present. Null if no value is missing.
  const std::uint8_t* validity = nullptr;
  std::int64_t length = 0;
  std::int64_t offset = 0;
  std::int64_t null_count = -1;  ///< -1: not known.
};

}  // namespace headrace::fetch
