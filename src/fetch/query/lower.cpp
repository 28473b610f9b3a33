#include "fetch/query/lower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fetch/program/calendar.hpp"
#include "fetch/program/year_table.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

bool is_logic(Operation operation) { return operation == Operation::logical_and || operation == Operation::logical_or; }

/// Converts a literal so that it can be compared with a column of uint64.
Expression as_natural(const Expression& literal, const DataType& other) {
  const bool natural = other.id == Type::uint64 && literal.operation() == Operation::literal &&
                       literal.type().id == Type::int64 && !literal.is_missing() && literal.bits() >= 0;
  return natural ? Expression::literal(other, literal.bits()) : literal;
}

}  // namespace

bool is_wide_column(const TableView& table, const Expression& expression) {
  if (expression.operation() != Operation::column) return false;
  const DataType type = infer(table, expression).type;
  return type.id == Type::decimal128 && type.precision > kDigitsMax;
}

Op op_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::add: return Op::add;
    case Operation::subtract: return Op::subtract;
    case Operation::multiply: return Op::multiply;
    case Operation::divide: return Op::divide;
    case Operation::modulo: return Op::modulo;
    case Operation::equal: return Op::equal;
    case Operation::not_equal: return Op::not_equal;
    case Operation::less: return Op::less;
    case Operation::less_equal: return Op::less_equal;
    case Operation::greater: return Op::greater;
    case Operation::greater_equal: return Op::greater_equal;
    case Operation::logical_and: return Op::both;
    case Operation::logical_or: return Op::either;
    default: return Op::load;
  }
}

Instruction& Lowering::add(const Instruction& instruction) {
  Program& program = out_.program;
  if (program.code_count == kInstructionsMax) {
    throw UsageError(fmt::format("the query is too long: a scan runs at most {} instructions", kInstructionsMax));
  }
  program.code[program.code_count] = instruction;
  return program.code[program.code_count++];
}

std::uint16_t Lowering::column(std::uint32_t number) {
  const auto found = std::ranges::find(out_.columns, number);
  const auto place = static_cast<std::uint16_t>(found - out_.columns.begin());
  if (found == out_.columns.end()) out_.columns.push_back(number);
  return place;
}

void Lowering::with_constant(Op op, std::int64_t value, Kind kind) {
  add({.op = op, .kind = kind, .source = OperandSource::constant, .value = value});
}

bool Lowering::is_leaf(const Expression& expression, const DataType& type) const {
  if (expression.operation() == Operation::literal) return fold(expression, type).has_value();
  if (expression.operation() != Operation::column) return false;
  const DataType& own = infer(table_, expression).type;
  // Registers hold narrow integers as int64 and floats as double.
  const bool widens = (is_integer(own.id) && type.id == Type::int64 && own.id != Type::uint64) ||
                      (own.id == Type::float32 && type.id == Type::float64) ||
                      (own.id == Type::dictionary && type.id == Type::dictionary) ||
                      (own.id == Type::decimal128 && type.id == Type::decimal128 && own.scale == type.scale);
  return own == type || widens;
}

void Lowering::set_source(Instruction& instruction, const Expression& leaf, const DataType& type) {
  if (leaf.operation() == Operation::column) {
    instruction.source = OperandSource::column;
    instruction.index = column(leaf.column_number());
    const DataType stored = infer(table_, leaf).type;
    instruction.type = stored.id == Type::dictionary ? stored.index : stored.id;
    return;
  }
  const Expression literal = *fold(leaf, type);
  instruction.source = literal.is_missing() ? OperandSource::missing : OperandSource::constant;
  instruction.value = literal.bits();
}

void Lowering::lower_presence(const Expression& expression) {
  if (is_wide_column(table_, expression)) {
    lower_part(expression, DecimalPart::low);
  } else {
    lower(expression);
  }
}

void Lowering::lower_part(const Expression& column, DecimalPart part) {
  Instruction load{.op = Op::load, .flags = static_cast<std::uint8_t>(part)};
  set_source(load, column, infer(table_, column).type);
  add(load);
}

void Lowering::lower_as(const Expression& expression, const DataType& type) {
  if (is_leaf(expression, type)) {
    Instruction load{.op = Op::load};
    set_source(load, expression, type);
    add(load);
    return;
  }
  convert(lower(expression).type, type);
}

Typed Lowering::lower(const Expression& expression) {
  const Typed result = infer(table_, expression);
  switch (expression.operation()) {
    case Operation::column:
    case Operation::literal: lower_as(expression, result.type); break;
    case Operation::text:
      throw UsageError(fmt::format("the string '{}' must be compared with a column", expression.string()));
    case Operation::logical_not:
      lower(expression.arguments()[0]);
      add({.op = Op::negate});
      break;
    case Operation::is_null:
      lower_presence(expression.arguments()[0]);
      add({.op = Op::is_null});
      break;
    case Operation::is_in: lower_in(expression); break;
    case Operation::cast: lower_as(expression.arguments()[0], expression.type()); break;
    case Operation::year: lower_year(expression.arguments()[0]); break;
    default: lower_binary(expression);
  }
  return result;
}

void Lowering::lower_year(const Expression& expression) {
  const Typed stamp = lower(expression);
  const bool days = stamp.type.id == Type::date32;
  std::optional<YearTable> table;
  if (year_tables_ && stamp.range) {
    table = make_year_table(*stamp.range, days ? 1 : units_per_day(stamp.type.unit), kYearStartsMax - year_starts_);
  }
  if (!table) {
    add({.op = days ? Op::year_of_days : Op::year_of_stamp, .index = static_cast<std::uint16_t>(stamp.type.unit)});
    return;
  }
  add({.op = Op::year_near,
       .flags = days ? kDayUnit : static_cast<std::uint8_t>(stamp.type.unit),
       .index = static_cast<std::uint16_t>(year_starts_),
       .count = static_cast<std::uint16_t>(table->starts.size()),
       .shift = table->shift,
       .factor = table->factor,
       .value = table->base,
       .second = table->first_year});
  std::ranges::copy(table->starts, out_.program.year_starts + year_starts_);
  year_starts_ += static_cast<std::uint32_t>(table->starts.size());
}

void Lowering::lower_binary(const Expression& expression) {
  const Operation operation = expression.operation();
  Expression left = expression.arguments()[0];
  Expression right = expression.arguments()[1];
  const DataType left_type = infer(table_, left).type;
  const DataType right_type = infer(table_, right).type;
  if (left_type.id == Type::dictionary) return lower_strings(operation, std::move(left), std::move(right));
  left = as_natural(left, right_type);
  right = as_natural(right, left_type);
  DataType left_as = infer(table_, left).type;
  DataType right_as = infer(table_, right).type;
  DataType common = left_as;
  if (!is_logic(operation)) common = common_type(operation, left_as, right_as);
  // A product of decimals keeps the operands' own scales.
  const bool product = operation == Operation::multiply && common.id == Type::decimal128;
  const DataType int64{.id = Type::int64};
  if (!product) left_as = right_as = common;
  if (product && is_integer(left_as.id)) left_as = int64;
  if (product && is_integer(right_as.id)) right_as = int64;
  Instruction instruction{.op = op_of(operation), .kind = kind_of(common)};
  if (is_leaf(right, right_as)) {
    lower_as(left, left_as);
    set_source(instruction, right, right_as);
    add(instruction);
    return;
  }
  const std::uint16_t slot = take_slot();
  lower_as(right, right_as);
  add({.op = Op::save, .index = slot});
  lower_as(left, left_as);
  instruction.source = OperandSource::slot;
  instruction.index = slot;
  add(instruction);
  --slots_;
}

std::uint16_t Lowering::take_slot() {
  if (slots_ == kSlots) throw UsageError("an expression is nested too deeply; put simpler operands on the right");
  return static_cast<std::uint16_t>(slots_++);
}

void Lowering::lower_in(const Expression& expression) {
  const Typed value = infer(table_, expression.arguments()[0]);
  DataType common = value.type;
  for (std::size_t i = 1; i < expression.arguments().size(); ++i) {
    common = common_type(Operation::equal, common, as_natural(expression.arguments()[i], common).type());
  }
  Instruction in{.op = Op::is_in, .kind = kind_of(common), .index = static_cast<std::uint16_t>(constants_)};
  for (std::size_t i = 1; i < expression.arguments().size(); ++i) {
    const Expression& given = expression.arguments()[i];
    const auto literal = given.operation() == Operation::text
                             ? Expression::literal(common, code_of(given, expression.arguments()[0]))
                             : fold(as_natural(given, common), common);
    if (!literal) {
      throw UsageError(fmt::format("is_in cannot convert a literal of type {} to {} without loss",
                                   to_string(expression.arguments()[i].type()), to_string(common)));
    }
    if (literal->is_missing()) {
      in.flags = 1;
      continue;
    }
    if (constants_ == kConstantsMax) {
      throw UsageError(fmt::format("is_in takes at most {} literals in the whole query", kConstantsMax));
    }
    out_.program.constants[constants_++] = literal->bits();
    ++in.count;
  }
  lower_as(expression.arguments()[0], common);
  add(in);
}

void Lowering::convert(const DataType& from, const DataType& to) {
  if (from == to) return;
  if (to.id == Type::date32 || to.id == Type::timestamp) return convert_time(from, to);
  const bool ordinary = is_number(from.id) || from.id == Type::boolean;
  if (from.id == Type::dictionary && to.id == Type::dictionary) return;
  if (!ordinary || (!is_number(to.id) && to.id != Type::boolean)) {
    throw UsageError(fmt::format("{} cannot be cast to {}", to_string(from), to_string(to)));
  }
  if (to.id == Type::boolean) return with_constant(Op::not_equal, 0, kind_of(from));
  if (to.id == Type::decimal128) return convert_to_decimal(from, to);
  if (is_float(to.id)) return convert_to_float(from, to);
  convert_to_integer(from, to);
}

void Lowering::convert_to_float(const DataType& from, const DataType& to) {
  if (!is_float(from.id)) add({.op = Op::to_float, .kind = kind_of(from)});
  if (from.id == Type::decimal128 && from.scale > 0) {
    with_constant(Op::divide, as_bits(static_cast<double>(power_of_ten(from.scale))), Kind::real);
  }
  if (to.id == Type::float32 && from.id != Type::float32) add({.op = Op::to_float32});
}

void Lowering::convert_to_decimal(const DataType& from, const DataType& to) {
  const std::int64_t most = to.precision <= kDigitsMax ? power_of_ten(to.precision) - 1 : INT64_MAX;
  if (is_float(from.id)) {
    with_constant(Op::multiply, as_bits(static_cast<double>(power_of_ten(to.scale))), Kind::real);
    add({.op = Op::to_integer, .value = most == INT64_MAX ? INT64_MIN : -most, .second = most});
    return;
  }
  if (from.id == Type::uint64) add({.op = Op::check, .kind = Kind::natural});
  const int up = to.scale - (from.id == Type::decimal128 ? from.scale : 0);
  if (up > 0) with_constant(Op::multiply, power_of_ten(up));
  if (up < 0) add({.op = Op::divide_round, .value = power_of_ten(-up)});
  const bool widens = from.id == Type::decimal128 && to.precision - to.scale >= from.precision - from.scale && up >= 0;
  if (most != INT64_MAX && !widens) add({.op = Op::check, .value = -most, .second = most});
}

void Lowering::convert_to_integer(const DataType& from, const DataType& to) {
  const ValueRange range = range_of(to.id);
  if (is_float(from.id)) {
    add({.op = Op::to_integer, .value = range.least, .second = range.greatest});
    return;
  }
  if (from.id == Type::uint64) add({.op = Op::check, .kind = Kind::natural});
  if (from.id == Type::decimal128 && from.scale > 0) {
    add({.op = Op::divide_round, .value = power_of_ten(from.scale)});
  }
  const ValueRange had = is_integer(from.id) ? range_of(from.id) : range_of(Type::int64);
  const bool fits = from.id == Type::boolean || (had.least >= range.least && had.greatest <= range.greatest);
  if (!fits) add({.op = Op::check, .value = range.least, .second = range.greatest});
}

void Lowering::convert_time(const DataType& from, const DataType& to) {
  if (from.id == Type::date32 && to.id == Type::timestamp) return with_constant(Op::multiply, units_per_day(to.unit));
  if (from.id == Type::timestamp && to.id == Type::date32) {
    add({.op = Op::divide_floor, .value = units_per_day(from.unit)});
    add({.op = Op::check, .value = INT32_MIN, .second = INT32_MAX});
    return;
  }
  if (from.id != Type::timestamp || to.id != Type::timestamp) {
    throw UsageError(fmt::format("{} cannot be cast to {}", to_string(from), to_string(to)));
  }
  const std::int64_t had = units_per_day(from.unit);
  const std::int64_t wanted = units_per_day(to.unit);
  if (wanted > had) return with_constant(Op::multiply, wanted / had);
  add({.op = Op::divide_floor, .value = had / wanted});
}

}  // namespace headrace::fetch
