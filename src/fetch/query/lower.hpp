#pragma once

#include <vector>

#include "fetch/query/compiler.hpp"

namespace headrace::fetch {

/// Whether an expression is a column of decimals whose values may need more than 64 bits.
[[nodiscard]] bool is_wide_column(const TableView& table, const Expression& expression);

/// The instruction for an operation of two operands.
[[nodiscard]] Op op_of(Operation operation) noexcept;

/// The dictionary of a column of strings; null if it has none. Throws UsageError if the expression is not a column.
[[nodiscard]] const Dictionary* dictionary_of(const TableView& table, const Expression& column);
/// The order of the dictionary that an expression's values are indices into; null if the expression has no strings, is
/// a constant, or is a column without a dictionary.
[[nodiscard]] std::shared_ptr<const DictionaryOrder> order_of(const TableView& table, const Expression& expression);
/// The ranks in that order.
[[nodiscard]] Ranks ranks_of(const TableView& table, const Expression& expression);

/// Translates expressions to instructions.
class Lowering {
 public:
  Lowering(const TableView& table, Compiled& out, bool year_tables)
      : table_(table), out_(out), year_tables_(year_tables) {}

  /// Adds instructions that leave the expression's value in the accumulator.
  Typed lower(const Expression& expression);
  /// The same, converted to `type`.
  void lower_as(const Expression& expression, const DataType& type);
  /// Leaves a value in the accumulator that is missing where the expression's value is; only its validity is
  /// meaningful.
  void lower_presence(const Expression& expression);
  /// Leaves one part of a column of decimals in the accumulator.
  void lower_part(const Expression& column, DecimalPart part);
  Instruction& add(const Instruction& instruction);
  /// For a column of strings with a dictionary: replaces the index in the accumulator with its rank, and returns the
  /// order. For any other expression, adds nothing and returns null.
  std::shared_ptr<const DictionaryOrder> rank(const Expression& expression);

 private:
  void convert(const DataType& from, const DataType& to);
  void convert_to_decimal(const DataType& from, const DataType& to);
  void convert_to_integer(const DataType& from, const DataType& to);
  void convert_to_float(const DataType& from, const DataType& to);
  void convert_time(const DataType& from, const DataType& to);
  void with_constant(Op op, std::int64_t value, Kind kind = Kind::integer);
  void lower_year(const Expression& expression);
  void lower_binary(const Expression& expression);
  void lower_in(const Expression& expression);
  void lower_strings(Operation operation, Expression left, Expression right);
  void lower_columns_of_strings(Operation operation, const Expression& left, const Expression& right);
  void add_rank(const Ranks& ranks);
  [[nodiscard]] std::uint16_t take_slot();
  /// The index of a string in a column's dictionary, or -1; for a literal, the index that it holds.
  [[nodiscard]] std::int64_t code_of(const Expression& literal, const Expression& column) const;
  [[nodiscard]] const Dictionary* dictionary_of(const Expression& column) const {
    return fetch::dictionary_of(table_, column);
  }
  [[nodiscard]] bool is_leaf(const Expression& expression, const DataType& type) const;
  void set_source(Instruction& instruction, const Expression& leaf, const DataType& type);
  [[nodiscard]] std::uint16_t column(std::uint32_t number);

  const TableView& table_;
  Compiled& out_;
  std::uint32_t slots_ = 0;
  std::uint32_t constants_ = 0;
  bool year_tables_;
  std::uint32_t year_starts_ = 0;
};

}  // namespace headrace::fetch
