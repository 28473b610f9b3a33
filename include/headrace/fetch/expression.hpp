#pragma once

// An Expression defines a computation on each row of a table. Missing values follow SQL's rules: a missing operand
// gives a missing result, AND and OR are three-valued, and the result of is_null is never missing.
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

/// What an Expression computes from its arguments.
enum class Operation : std::uint8_t {
  column,         ///< The value of a column.
  literal,        ///< A constant, perhaps a missing one.
  text,           ///< A string, to be compared with a column of strings.
  add,            ///< Sum of two arguments.
  subtract,       ///< Difference of two arguments.
  multiply,       ///< Product of two arguments.
  divide,         ///< Quotient of two arguments, always float64; 1/0 is infinite, 0/0 is NaN.
  modulo,         ///< Remainder with the sign of the dividend, as in C; missing if an integer divisor is 0.
  equal,          ///< `=`
  not_equal,      ///< `<>`
  less,           ///< `<`
  less_equal,     ///< `<=`
  greater,        ///< `>`
  greater_equal,  ///< `>=`
  logical_and,    ///< AND of two booleans, three-valued.
  logical_or,     ///< OR of two booleans, three-valued.
  logical_not,    ///< NOT of a boolean.
  is_null,        ///< Whether the argument is missing; never missing itself.
  is_in,          ///< Whether the first argument is one of the others, which are literals.
  cast,           ///< Conversion to another type, see Expression::cast().
  year,           ///< The year of a date32 or timestamp (in UTC), as int64.
};

/// The name as explain() and errors print it, e.g. "add".
[[nodiscard]] std::string_view to_string(Operation operation) noexcept;
/// The type with its parameters as explain() and errors print it, e.g. "decimal128(12, 2)".
[[nodiscard]] std::string to_string(const DataType& type);

/// An expression over the columns of a table: a tree that is cheap to copy and never changes.
///
/// Integers compute in signed 64 bits, decimals in scaled 64 bits. A result that does not fit is an error of the scan,
/// never a wrong number. Float32 computes as float64. Floats have a total order: NaN equals NaN and is above all
/// others.
class Expression {
 public:
  /// The value of the column with that number.
  [[nodiscard]] static Expression column(std::uint32_t number);
  /// A value of `type`, as a register holds it: an integer, a decimal's units, a dictionary index, or a float's bits.
  [[nodiscard]] static Expression literal(const DataType& type, std::int64_t bits);
  /// A string, to be compared with a column of strings. Comparisons are by bytes, whatever indices the column's
  /// dictionary assigns.
  [[nodiscard]] static Expression text(std::string value);
  /// A missing value of `type`.
  [[nodiscard]] static Expression missing(const DataType& type);
  /// `operation` applied to arguments. Throws UsageError for a number of arguments that the operation does not take.
  /// Types are checked by scan().
  [[nodiscard]] static Expression call(Operation operation, std::vector<Expression> arguments);
  /// `value` converted to `type`. Float to integer rounds half to even, decimal to fewer digits half away from zero, a
  /// timestamp down to its date.
  [[nodiscard]] static Expression cast(Expression value, const DataType& type);

  /// What the root of the tree computes.
  [[nodiscard]] Operation operation() const noexcept { return node_->operation; }
  /// Its arguments; none for a column, a literal or a text.
  [[nodiscard]] const std::vector<Expression>& arguments() const noexcept { return node_->arguments; }
  /// The number of the column; only for Operation::column.
  [[nodiscard]] std::uint32_t column_number() const noexcept { return node_->column; }
  /// The type of a literal or a cast.
  [[nodiscard]] const DataType& type() const noexcept { return node_->type; }
  /// The value of a literal, as literal() takes it.
  [[nodiscard]] std::int64_t bits() const noexcept { return node_->bits; }
  /// True for a literal that is missing().
  [[nodiscard]] bool is_missing() const noexcept { return node_->missing; }
  [[nodiscard]] const std::string& string() const noexcept { return node_->string; }  ///< The text of a text literal.
  /// Appends the number of every column that the expression names to `to`, perhaps more than once.
  void columns(std::vector<std::uint32_t>& to) const;
  /// The same expression over the columns of another table: column c becomes `numbers[c]`.
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
