#include "headrace/fetch/arrow.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "fetch/query/typing.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/expression.hpp"

namespace headrace::fetch {

namespace {

struct PlainFormat {
  std::string_view format;
  Type type;
};
constexpr std::array kPlainFormats{
    PlainFormat{"b", Type::boolean}, PlainFormat{"c", Type::int8},    PlainFormat{"s", Type::int16},
    PlainFormat{"i", Type::int32},   PlainFormat{"l", Type::int64},   PlainFormat{"C", Type::uint8},
    PlainFormat{"S", Type::uint16},  PlainFormat{"I", Type::uint32},  PlainFormat{"L", Type::uint64},
    PlainFormat{"f", Type::float32}, PlainFormat{"g", Type::float64}, PlainFormat{"tdD", Type::date32},
};

constexpr int kDecimalDigits = 38;

/// "ts<unit>:<zone>".
std::optional<DataType> parse_timestamp(std::string_view format) noexcept {
  if (!format.starts_with("ts") || format.size() < 4 || format[3] != ':') return std::nullopt;
  constexpr std::string_view letters = "smun";
  const std::size_t unit = letters.find(format[2]);
  if (unit == std::string_view::npos) return std::nullopt;
  return DataType{.id = Type::timestamp, .unit = static_cast<TimeUnit>(unit)};
}

/// "d:<precision>,<scale>" optionally followed by ",128".
std::optional<DataType> parse_decimal(std::string_view format) noexcept {
  if (!format.starts_with("d:")) return std::nullopt;
  std::array<int, 3> numbers{0, 0, 128};
  const char* at = format.data() + 2;
  const char* const end = format.data() + format.size();
  std::size_t count = 0;
  while (count < numbers.size()) {
    const auto [next, failed] = std::from_chars(at, end, numbers[count]);
    if (failed != std::errc{}) return std::nullopt;
    ++count;
    at = next;
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  const auto [precision, scale, bits] = numbers;
  if (at != end || count < 2 || bits != 128 || precision < 1 || precision > kDecimalDigits || scale < -kDecimalDigits ||
      scale > kDecimalDigits) {
    return std::nullopt;
  }
  return DataType{.id = Type::decimal128,
                  .precision = static_cast<std::uint8_t>(precision),
                  .scale = static_cast<std::int8_t>(scale)};
}

}  // namespace

std::optional<DataType> parse_format(std::string_view format) noexcept {
  for (const PlainFormat& entry : kPlainFormats) {
    if (entry.format == format) return DataType{.id = entry.type};
  }
  if (const auto timestamp = parse_timestamp(format)) return timestamp;
  return parse_decimal(format);
}

std::optional<DataType> type_of(const ArrowSchema& schema) noexcept {
  if (schema.format == nullptr) return std::nullopt;
  const auto type = parse_format(schema.format);
  if (schema.dictionary == nullptr) return type;
  if (schema.dictionary->format == nullptr) return std::nullopt;
  const std::string_view values = schema.dictionary->format;
  const bool known = values == "u" || values == "U" || values == "z" || values == "Z";
  if (!type || !is_integer(type->id) || !known) return std::nullopt;
  return DataType{.id = Type::dictionary, .index = type->id};
}

ColumnView view_of(const ArrowArray& array, const DataType& type) {
  if (array.length < 0 || array.offset < 0 || array.length > kTableRowsMax || array.offset > kTableRowsMax) {
    throw DataError(
        fmt::format("an array has length {} and offset {}, which are out of range", array.length, array.offset));
  }
  if (array.n_buffers != 2 || array.buffers == nullptr) {
    throw DataError(fmt::format("an array of type {} must have 2 buffers, not {}", to_string(type), array.n_buffers));
  }
  if (array.length > 0 && array.buffers[1] == nullptr) throw DataError("an array has no values buffer");
  if ((array.dictionary != nullptr) != (type.id == Type::dictionary)) {
    throw DataError(fmt::format("an array {} a dictionary cannot hold values of type {}",
                                array.dictionary == nullptr ? "without" : "with", to_string(type)));
  }
  const bool has_nulls = array.null_count != 0 && array.buffers[0] != nullptr;
  if (array.null_count > 0 && array.buffers[0] == nullptr) throw DataError("an array has nulls but no validity buffer");
  if (array.null_count < -1 || array.null_count > array.length) {
    throw DataError(fmt::format("an array of {} values has a null count of {}", array.length, array.null_count));
  }
  if (array.buffers[1] == nullptr) return {.type = type, .null_count = 0};  // no values, so the offset does not matter
  return {.type = type,
          .values = array.buffers[1],
          .validity = has_nulls ? static_cast<const std::uint8_t*>(array.buffers[0]) : nullptr,
          .length = array.length,
          .offset = array.offset,
          .null_count = has_nulls ? array.null_count : 0};
}

}  // namespace headrace::fetch
