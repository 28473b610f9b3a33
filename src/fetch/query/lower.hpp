#pragma once

#include <vector>

#include "fetch/query/compiler.hpp"

namespace headrace::fetch {

/// Whether an expression is a column of decimals of which some may take more than 64 bits.
[[nodiscard]] bool is_wide_column(const TableView& table, const Expression& expression);

/// The instruction for an operation of two operands.
[[nodiscard]] Op op_of(Operation operation) noexcept;

/// The dictionary of a column of strings; null where it has none. Throws UsageError for what is no column.
[[nodiscard]] const Dictionary* dictionary_of(const TableView& table, const Expression& column);
/// The order of the entries that an expression's values are indices of; null where it gives no strings, a constant, or
/// those of a column that has no dictionary.
[[nodiscard]] std::shared_ptr<const DictionaryOrder> order_of(const TableView& table, const Expression& expression);
/// The ranks in it.
[[nodiscard]] Ranks ranks_of(const TableView& table, const Expression& expression);

/// Expressions to instructions.
class Lowering {
 public:
  Lowering(const TableView& table, Compiled& out, bool year_tables)
      : table_(table), out_(out), year_tables_(year_tables) {}

  /// Leaves the value in the accumulator.
  Typed lower(const Expression& expression);
  /// The same in another type.
  void lower_as(const Expression& expression, const DataType& type);
  /// Leaves something there that is missing where the value is: nothing is computed of it.
  void lower_presence(const Expression& expression);
  /// Leaves a part of a column of decimals there.
  void lower_part(const Expression& column, DecimalPart part);
  Instruction& add(const Instruction& instruction);
  /// Where a column of strings has a dictionary: puts the place in order of what is in the accumulator there instead,
  /// and gives that order. Nothing happens, and null is given, for any other expression.
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
  /// The index of a string, or a literal's, in the dictionary of a column; -1 where it has none.
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
