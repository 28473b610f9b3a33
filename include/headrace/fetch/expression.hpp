#pragma once

// An Expression says what is computed of each row of a table. SQL's rules hold for what is missing: a missing operand
// gives a missing result, AND and OR are three-valued, is_null never misses.
//
//     headrace::fetch::Expression fare = headrace::fetch::Expression::column(2);
//     headrace::fetch::Expression hundred =
//         headrace::fetch::Expression::literal({.id = headrace::fetch::Type::int64}, 100);
//     headrace::fetch::Expression cents =
//         headrace::fetch::Expression::call(headrace::fetch::Operation::multiply, {fare, hundred});
//     headrace::fetch::Expression is_dear =
//         headrace::fetch::Expression::call(headrace::fetch::Operation::greater, {fare, hundred});

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

enum class Operation : std::uint8_t {
  column,
  literal,
  text,  ///< A string, beside a column of strings.
  add,
  subtract,
  multiply,
  divide,  ///< Always float64; 1/0 is infinite, 0/0 is no number.
  modulo,  ///< The sign of the dividend, as in C; missing where an integer divisor is 0.
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_not,
  is_null,
  is_in,  ///< The first argument is one of the others, which are literals.
  cast,
  year,  ///< The year of a date32 or timestamp (in UTC), as int64.
};

/// "add", as explain() and errors print it.
[[nodiscard]] std::string_view to_string(Operation operation) noexcept;
[[nodiscard]] std::string to_string(const DataType& type);

/// An expression over the columns of a table: a tree that is cheap to copy and never changes.
///
/// Integers compute in 64 bits with a sign, decimals in 64 bits scaled, and a result that does not fit is an error of
/// the scan, not a wrong number. Float32 computes as float64. Floats order totally: NaN equals NaN and is above all.
class Expression {
 public:
  /// The column of that number.
  [[nodiscard]] static Expression column(std::uint32_t number);
  /// A value of `type`, as a register holds it: an integer, a decimal's units, a dictionary index, or a float's bits.
  [[nodiscard]] static Expression literal(const DataType& type, std::int64_t bits);
  /// A string, to be compared with a column of strings: by its bytes, whatever indices the column's dictionary gives.
  [[nodiscard]] static Expression text(std::string value);
  /// A value of `type` that is missing.
  [[nodiscard]] static Expression missing(const DataType& type);
  /// Throws UsageError when there are not as many arguments as the operation takes.
  [[nodiscard]] static Expression call(Operation operation, std::vector<Expression> arguments);
  /// Float to integer rounds half to even, decimal to fewer digits half away from zero, a timestamp down to its date.
  [[nodiscard]] static Expression cast(Expression value, const DataType& type);

  [[nodiscard]] Operation operation() const noexcept { return node_->operation; }
  [[nodiscard]] const std::vector<Expression>& arguments() const noexcept { return node_->arguments; }
  [[nodiscard]] std::uint32_t column_number() const noexcept { return node_->column; }
  /// The type of a literal or a cast.
  [[nodiscard]] const DataType& type() const noexcept { return node_->type; }
  [[nodiscard]] std::int64_t bits() const noexcept { return node_->bits; }
  [[nodiscard]] bool is_missing() const noexcept { return node_->missing; }
  [[nodiscard]] const std::string& string() const noexcept { return node_->string; }  ///< The text of a text literal.
  /// Every column that the expression names, into `to`; some may be named twice.
  void columns(std::vector<std::uint32_t>& to) const;
  /// The same over the columns of another table: column c becomes `numbers[c]`.
  [[nodiscard]] Expression renumbered(const std::vector<std::uint32_t>& numbers) const;

 private:
  struct Node {
    Operation operation = Operation::literal;
    std::vector<Expression> arguments{};
    std::uint32_t column = 0;
    DataType type{};
    std::int64_t bits = 0;
    bool missing = false;
    std::string string{};
  };
  explicit Expression(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}
  std::shared_ptr<const Node> node_;
};

}  // namespace headrace::fetch
