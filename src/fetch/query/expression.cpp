#include "headrace/fetch/expression.hpp"

#include <fmt/format.h>

#include <array>

#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

struct OperationRow {
  std::string_view name;
  std::size_t arguments_min;
  std::size_t arguments_max;
};

constexpr std::size_t kMany = 257;

constexpr std::array<OperationRow, 21> kOperations{{
    {"column", 0, 0},     {"literal", 0, 0},     {"text", 0, 0},    {"add", 2, 2},           {"subtract", 2, 2},
    {"multiply", 2, 2},   {"divide", 2, 2},      {"modulo", 2, 2},  {"equal", 2, 2},         {"not_equal", 2, 2},
    {"less", 2, 2},       {"less_equal", 2, 2},  {"greater", 2, 2}, {"greater_equal", 2, 2}, {"logical_and", 2, 2},
    {"logical_or", 2, 2}, {"logical_not", 1, 1}, {"is_null", 1, 1}, {"is_in", 1, kMany},     {"cast", 1, 1},
    {"year", 1, 1},
}};

constexpr std::array<std::string_view, 4> kUnits{"s", "ms", "us", "ns"};

}  // namespace

std::string_view to_string(Operation operation) noexcept {
  return kOperations[static_cast<std::size_t>(operation)].name;
}

std::string to_string(const DataType& type) {
  switch (type.id) {
    case Type::boolean: return "bool";
    case Type::int8: return "int8";
    case Type::int16: return "int16";
    case Type::int32: return "int32";
    case Type::int64: return "int64";
    case Type::uint8: return "uint8";
    case Type::uint16: return "uint16";
    case Type::uint32: return "uint32";
    case Type::uint64: return "uint64";
    case Type::float32: return "float";
    case Type::float64: return "double";
    case Type::date32: return "date32";
    case Type::timestamp: return fmt::format("timestamp[{}]", kUnits[static_cast<std::size_t>(type.unit)]);
    case Type::decimal128: return fmt::format("decimal128({}, {})", type.precision, type.scale);
    case Type::dictionary: return "string";
  }
  return "no type";
}

Expression Expression::column(std::uint32_t number) {
  return Expression(Node{.operation = Operation::column, .column = number});
}

Expression Expression::literal(const DataType& type, std::int64_t bits) {
  return Expression(Node{.operation = Operation::literal, .type = type, .bits = bits});
}

Expression Expression::text(std::string value) {
  return Expression(Node{.operation = Operation::text, .type = {.id = Type::dictionary}, .string = std::move(value)});
}

Expression Expression::missing(const DataType& type) {
  return Expression(Node{.operation = Operation::literal, .type = type, .missing = true});
}

Expression Expression::call(Operation operation, std::vector<Expression> arguments) {
  const OperationRow& row = kOperations[static_cast<std::size_t>(operation)];
  if (row.arguments_max == 0 || operation == Operation::cast) {
    throw UsageError(fmt::format("{} is not an operation that call() accepts", row.name));
  }
  if (arguments.size() < row.arguments_min || arguments.size() > row.arguments_max) {
    const std::string range = row.arguments_min == row.arguments_max
                                  ? fmt::format("{}", row.arguments_max)
                                  : fmt::format("{} to {}", row.arguments_min, row.arguments_max);
    throw UsageError(fmt::format("{} takes {} arguments, not {}", row.name, range, arguments.size()));
  }
  return Expression(Node{.operation = operation, .arguments = std::move(arguments)});
}

Expression Expression::cast(Expression value, const DataType& type) {
  return Expression(Node{.operation = Operation::cast, .arguments = {std::move(value)}, .type = type});
}

void Expression::columns(std::vector<std::uint32_t>& to) const {
  if (operation() == Operation::column) to.push_back(column_number());
  for (const Expression& argument : arguments()) argument.columns(to);
}

Expression Expression::renumbered(const std::vector<std::uint32_t>& numbers) const {
  if (operation() == Operation::column) return column(numbers.at(column_number()));
  Node node = *node_;
  for (Expression& argument : node.arguments) argument = argument.renumbered(numbers);
  return Expression(std::move(node));
}

}  // namespace headrace::fetch
