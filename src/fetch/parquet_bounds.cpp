#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "fetch/parquet_footer.hpp"
#include "fetch/program/rows.hpp"
#include "fetch/query/typing.hpp"

namespace headrace::fetch {

namespace {

/// Physical types of the format: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
enum class Physical : std::uint8_t { boolean, int32, int64, int96, float32, float64, byte_array, fixed_bytes };

template <class T>
std::optional<T> plain(std::string_view bytes) noexcept {
  if (bytes.size() != sizeof(T)) return {};
  T value;
  bytes.copy(reinterpret_cast<char*>(&value), sizeof(T));
  return value;
}

/// Reads a big-endian two's complement number; empty if it does not fit 64 bits.
std::optional<std::int64_t> big_endian(std::string_view bytes) noexcept {
  if (bytes.empty() || bytes.size() > sizeof(__int128)) return {};
  __int128 value = static_cast<unsigned char>(bytes[0]) < 0x80 ? 0 : -1;
  for (const char byte : bytes) value = value * 256 + static_cast<unsigned char>(byte);
  if (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max()) return {};
  return static_cast<std::int64_t>(value);
}

template <class Signed, class Unsigned>
std::optional<std::int64_t> integer(std::string_view bytes, const DataType& type) noexcept {
  const auto value = plain<Signed>(bytes);
  if (!value) return {};
  const bool without_sign = type.id >= Type::uint8 && type.id <= Type::uint64;
  if (!without_sign) return static_cast<std::int64_t>(*value);
  const auto bits = static_cast<Unsigned>(*value);
  if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
  return static_cast<std::int64_t>(bits);
}

template <class Float>
std::optional<std::int64_t> real(std::string_view bytes) noexcept {
  const auto value = plain<Float>(bytes);
  if (!value || std::isnan(*value)) return {};
  return as_bits(static_cast<double>(*value));
}

/// Converts a value to the form that Expression::literal() takes; empty if the value's type does not match the
/// column's.
std::optional<std::int64_t> literal_of(std::string_view bytes, Physical physical, const DataType& type) noexcept {
  const bool whole = is_integer(type.id) || type.id == Type::date32 || type.id == Type::timestamp;
  const bool decimal = type.id == Type::decimal128;
  switch (physical) {
    case Physical::boolean: {
      const auto value = plain<std::uint8_t>(bytes);
      if (type.id != Type::boolean || !value || *value > 1) return {};
      return *value;
    }
    case Physical::int32: return whole || decimal ? integer<std::int32_t, std::uint32_t>(bytes, type) : std::nullopt;
    case Physical::int64: return whole || decimal ? integer<std::int64_t, std::uint64_t>(bytes, type) : std::nullopt;
    case Physical::float32: return type.id == Type::float32 ? real<float>(bytes) : std::nullopt;
    case Physical::float64: return type.id == Type::float64 ? real<double>(bytes) : std::nullopt;
    case Physical::byte_array:
    case Physical::fixed_bytes: return decimal ? big_endian(bytes) : std::nullopt;
    case Physical::int96: return {};
  }
  return {};
}

}  // namespace

ChunkBounds bounds_of(const ParquetStatistics& statistics, const DataType& type, std::int64_t rows) {
  ChunkBounds bounds;
  if (statistics.nulls && (*statistics.nulls < 0 || *statistics.nulls > rows)) return bounds;
  bounds.nulls = statistics.nulls.value_or(-1);
  if (statistics.physical_type < 0 || !statistics.least) return bounds;
  const auto physical = static_cast<Physical>(statistics.physical_type);
  if (type.id == Type::dictionary) {
    if (physical != Physical::byte_array || !statistics.greatest || *statistics.greatest < *statistics.least) return {};
    bounds.strings = {*statistics.least, *statistics.greatest};
    return bounds;
  }
  const auto least = literal_of(*statistics.least, physical, type);
  if (!least) return bounds;
  if (is_float(type.id)) {
    bounds.range = {*least, as_bits(std::numeric_limits<double>::quiet_NaN())};
    return bounds;
  }
  if (!statistics.greatest) return bounds;
  const auto greatest = literal_of(*statistics.greatest, physical, type);
  if (!greatest) return bounds;
  if (*greatest < *least) return {};
  bounds.range = {*least, *greatest};
  return bounds;
}

}  // namespace headrace::fetch
