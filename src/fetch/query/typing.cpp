#include "fetch/query/typing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fetch/program/calendar.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr DataType kInt64{.id = Type::int64};
constexpr DataType kFloat64{.id = Type::float64};
constexpr DataType kBoolean{.id = Type::boolean};

DataType decimal(int precision, int scale) {
  return {.id = Type::decimal128,
          .precision = static_cast<std::uint8_t>(std::min(precision, 38)),
          .scale = static_cast<std::int8_t>(scale)};
}

/// Digits before the decimal point of a numeric type.
int whole_digits(const DataType& type) { return type.id == Type::decimal128 ? type.precision - type.scale : 19; }

[[noreturn]] void refuse(Operation operation, const DataType& left, const DataType& right) {
  throw UsageError(fmt::format("{} does not take {} and {}", to_string(operation), to_string(left), to_string(right)));
}

bool is_comparison(Operation operation) {
  return operation >= Operation::equal && operation <= Operation::greater_equal;
}

std::optional<ValueRange> arithmetic_range(Operation operation, const Typed& left, const Typed& right) {
  if (!left.range || !right.range || !is_integer(left.type.id) || !is_integer(right.type.id)) return {};
  bool over = false;
  bool over_too = false;
  ValueRange range;
  if (operation == Operation::add) {
    range = {add(left.range->least, right.range->least, over),
             add(left.range->greatest, right.range->greatest, over_too)};
  } else if (operation == Operation::subtract) {
    range = {subtract(left.range->least, right.range->greatest, over),
             subtract(left.range->greatest, right.range->least, over_too)};
  } else {
    return {};
  }
  return over || over_too ? std::nullopt : std::optional(range);
}

/// Converts one end of a range to another type; empty if the result is not known.
std::optional<std::int64_t> cast_end(std::int64_t value, const DataType& from, const DataType& to) {
  if (is_float(from.id) && is_integer(to.id)) {
    const double rounded = std::nearbyint(as_double(value));
    if (!(std::abs(rounded) < 9e18)) return {};
    return static_cast<std::int64_t>(rounded);
  }
  if ((is_integer(from.id) || from.id == Type::boolean) && is_integer(to.id)) return value;
  if (from.id == Type::decimal128 && is_integer(to.id)) return round_divide(value, power_of_ten(from.scale));
  if (from.id == Type::timestamp && to.id == Type::date32) return floor_divide(value, units_per_day(from.unit));
  return {};
}

Typed infer_arithmetic(Operation operation, const Typed& left, const Typed& right) {
  const DataType common = common_type(operation, left.type, right.type);
  Typed result{.type = common, .nullable = left.nullable || right.nullable};
  if (operation == Operation::divide) {
    result.type = kFloat64;
  } else if (common.id == Type::decimal128) {
    if (operation == Operation::multiply) {
      const int scale = (left.type.id == Type::decimal128 ? left.type.scale : 0) +
                        (right.type.id == Type::decimal128 ? right.type.scale : 0);
      if (scale > kDigitsMax) {
        throw UsageError(
            fmt::format("the product of {} and {} has {} digits after the point, but 64 bits hold at most {}",
                        to_string(left.type), to_string(right.type), scale, kDigitsMax));
      }
      result.type = decimal(whole_digits(left.type) + whole_digits(right.type) + scale, scale);
    } else {
      result.type =
          decimal(std::max(whole_digits(left.type), whole_digits(right.type)) + common.scale + 1, common.scale);
    }
  } else if (operation == Operation::modulo) {
    result.nullable |= common.id == Type::int64;
  }
  result.range = arithmetic_range(operation, left, right);
  return result;
}

Typed infer_in(const TableView& table, const Expression& expression, const Typed& value) {
  Typed result{.type = kBoolean, .nullable = value.nullable, .range = ValueRange{0, 1}};
  for (std::size_t i = 1; i < expression.arguments().size(); ++i) {
    const Expression& one = expression.arguments()[i];
    if (one.operation() != Operation::literal && one.operation() != Operation::text) {
      throw UsageError("is_in takes only literals after its first argument");
    }
    static_cast<void>(common_type(Operation::equal, value.type, infer(table, one).type));
    result.nullable |= one.is_missing();
  }
  return result;
}

Typed infer_year(const Typed& value) {
  Typed result{.type = kInt64, .nullable = value.nullable};
  if (value.type.id != Type::date32 && value.type.id != Type::timestamp) {
    throw UsageError(fmt::format("year takes a date or a timestamp, not {}", to_string(value.type)));
  }
  if (value.range) {
    const std::int64_t units = value.type.id == Type::date32 ? 1 : units_per_day(value.type.unit);
    result.range = ValueRange{year_of(floor_divide(value.range->least, units)),
                              year_of(floor_divide(value.range->greatest, units))};
  }
  return result;
}

Typed infer_boolean(Operation operation, const std::vector<Typed>& arguments) {
  Typed result{.type = kBoolean, .nullable = false, .range = ValueRange{0, 1}};
  for (const Typed& one : arguments) {
    if (one.type.id != Type::boolean) {
      throw UsageError(fmt::format("{} takes booleans, not {}", to_string(operation), to_string(one.type)));
    }
    result.nullable |= one.nullable;
  }
  return result;
}

}  // namespace

std::int64_t TableView::rows() const noexcept {
  std::int64_t all = 0;
  for (const auto& fragment : fragments) all += fragment.empty() ? 0 : fragment[0].length;
  return all;
}

Operation mirrored(Operation comparison) noexcept {
  switch (comparison) {
    case Operation::less: return Operation::greater;
    case Operation::less_equal: return Operation::greater_equal;
    case Operation::greater: return Operation::less;
    case Operation::greater_equal: return Operation::less_equal;
    default: return comparison;
  }
}

bool is_integer(Type type) noexcept { return type >= Type::int8 && type <= Type::uint64; }
bool is_float(Type type) noexcept { return type == Type::float32 || type == Type::float64; }
bool is_number(Type type) noexcept { return is_integer(type) || is_float(type) || type == Type::decimal128; }

Kind kind_of(const DataType& type) noexcept {
  if (type.id == Type::uint64) return Kind::natural;
  return is_float(type.id) ? Kind::real : Kind::integer;
}

ValueRange range_of(Type integer) noexcept {
  switch (integer) {
    case Type::int8: return {INT8_MIN, INT8_MAX};
    case Type::int16: return {INT16_MIN, INT16_MAX};
    case Type::int32: return {INT32_MIN, INT32_MAX};
    case Type::uint8: return {0, UINT8_MAX};
    case Type::uint16: return {0, UINT16_MAX};
    case Type::uint32: return {0, UINT32_MAX};
    case Type::uint64: return {0, INT64_MAX};
    default: return {INT64_MIN, INT64_MAX};
  }
}

std::int64_t power_of_ten(int exponent) {
  if (exponent < 0 || exponent > kDigitsMax) {
    throw UsageError(
        fmt::format("a decimal has {} digits after the point, but 64 bits hold 0 to {}", exponent, kDigitsMax));
  }
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

DataType common_type(Operation operation, const DataType& left, const DataType& right) {
  const bool numbers = is_number(left.id) && is_number(right.id);
  if (!numbers && !is_comparison(operation)) refuse(operation, left, right);
  if (left.id == Type::date32 && right.id == Type::timestamp) return right;
  if (left.id == Type::timestamp && right.id == Type::date32) return left;
  if (left.id == Type::timestamp && right.id == Type::timestamp) return left.unit > right.unit ? left : right;
  if (!numbers) {
    if (left.id != right.id) refuse(operation, left, right);
    return left;
  }
  if (operation == Operation::divide || is_float(left.id) || is_float(right.id)) return kFloat64;
  if (left.id == Type::decimal128 || right.id == Type::decimal128) {
    const int scale =
        std::max<int>(left.id == Type::decimal128 ? left.scale : 0, right.id == Type::decimal128 ? right.scale : 0);
    return decimal(std::max(whole_digits(left), whole_digits(right)) + scale, scale);
  }
  const bool natural = left.id == Type::uint64 && right.id == Type::uint64 && is_comparison(operation);
  return natural ? left : kInt64;
}

std::optional<ValueRange> cast_range(const Typed& from, const DataType& to) {
  if (from.type == to) return from.range;
  if (!from.range) return {};
  const auto least = cast_end(from.range->least, from.type, to);
  const auto greatest = cast_end(from.range->greatest, from.type, to);
  if (!least || !greatest) return {};
  return ValueRange{*least, *greatest};
}

std::optional<Expression> fold(const Expression& literal, const DataType& type) {
  if (literal.operation() != Operation::literal) return {};
  const DataType& from = literal.type();
  if (from == type || kind_of(from) == Kind::natural) return from == type ? std::optional(literal) : std::nullopt;
  if (literal.is_missing()) return Expression::missing(type);
  const std::int64_t bits = literal.bits();
  const int from_scale = from.id == Type::decimal128 ? from.scale : 0;
  const bool exact = is_integer(from.id) || from.id == Type::decimal128;
  bool over = false;
  if (exact && type.id == Type::float64) {
    const double value = static_cast<double>(bits);
    return Expression::literal(
        type, as_bits(from_scale == 0 ? value : value / static_cast<double>(power_of_ten(from_scale))));
  }
  if (exact && type.id == Type::decimal128 && type.scale >= from_scale) {
    const std::int64_t scaled = multiply(bits, power_of_ten(type.scale - from_scale), over);
    return over ? std::nullopt : std::optional(Expression::literal(type, scaled));
  }
  if (is_integer(from.id) && is_integer(type.id) && bits >= range_of(type.id).least &&
      bits <= range_of(type.id).greatest) {
    return Expression::literal(type, bits);
  }
  if (from.id == Type::date32 && type.id == Type::timestamp) {
    const std::int64_t units = multiply(bits, units_per_day(type.unit), over);
    return over ? std::nullopt : std::optional(Expression::literal(type, units));
  }
  if (from.id == Type::timestamp && type.id == Type::timestamp && type.unit > from.unit) {
    const std::int64_t units = multiply(bits, units_per_day(type.unit) / units_per_day(from.unit), over);
    return over ? std::nullopt : std::optional(Expression::literal(type, units));
  }
  if (from.id == Type::float32 && type.id == Type::float64) return Expression::literal(type, bits);
  return {};
}

Typed infer(const TableView& table, const Expression& expression) {
  const Operation operation = expression.operation();
  if (operation == Operation::column) {
    if (expression.column_number() >= table.columns.size()) {
      throw UsageError(fmt::format("there is no column {}: the table has {} columns", expression.column_number(),
                                   table.columns.size()));
    }
    const ColumnFacts& facts = table.columns[expression.column_number()];
    const bool known = !facts.range && facts.type.id == Type::boolean;
    return {.type = facts.type, .nullable = facts.nullable, .range = known ? ValueRange{0, 1} : facts.range};
  }
  if (operation == Operation::text) return {.type = expression.type(), .nullable = false};
  if (operation == Operation::literal) {
    if (expression.is_missing()) return {.type = expression.type()};
    return {.type = expression.type(), .nullable = false, .range = ValueRange{expression.bits(), expression.bits()}};
  }
  std::vector<Typed> arguments;
  for (std::size_t i = 0; i < (operation == Operation::is_in ? 1 : expression.arguments().size()); ++i) {
    arguments.push_back(infer(table, expression.arguments()[i]));
  }
  switch (operation) {
    case Operation::add:
    case Operation::subtract:
    case Operation::multiply:
    case Operation::divide:
    case Operation::modulo: return infer_arithmetic(operation, arguments[0], arguments[1]);
    case Operation::logical_and:
    case Operation::logical_or:
    case Operation::logical_not: return infer_boolean(operation, arguments);
    case Operation::is_null: return {.type = kBoolean, .nullable = false, .range = ValueRange{0, 1}};
    case Operation::is_in: return infer_in(table, expression, arguments[0]);
    case Operation::cast:
      return {.type = expression.type(),
              .nullable = arguments[0].nullable,
              .range = cast_range(arguments[0], expression.type())};
    case Operation::year: return infer_year(arguments[0]);
    default:
      static_cast<void>(common_type(operation, arguments[0].type, arguments[1].type));
      return {.type = kBoolean, .nullable = arguments[0].nullable || arguments[1].nullable, .range = ValueRange{0, 1}};
  }
}

}  // namespace headrace::fetch
