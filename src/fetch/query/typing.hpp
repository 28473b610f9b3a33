#pragma once

#include <cstdint>
#include <optional>

#include "fetch/program/program.hpp"
#include "headrace/fetch/scan.hpp"

/// What an expression gives: its type, and what is known of its values.
namespace headrace::fetch {

struct Typed {
  DataType type;
  bool nullable = true;
  std::optional<ValueRange> range{};
};

[[nodiscard]] bool is_integer(Type type) noexcept;
[[nodiscard]] bool is_float(Type type) noexcept;
/// Integers, floats and decimals.
[[nodiscard]] bool is_number(Type type) noexcept;
[[nodiscard]] Kind kind_of(const DataType& type) noexcept;
/// The values of an integer type. Of uint64, those that an int64 holds.
[[nodiscard]] ValueRange range_of(Type integer) noexcept;
/// The comparison that holds with its operands exchanged; any other operation as it is.
[[nodiscard]] Operation mirrored(Operation comparison) noexcept;
/// Digits of a decimal that 64 bits hold.
inline constexpr int kDigitsMax = 18;
/// 10^exponent, for 0 to 18.
[[nodiscard]] std::int64_t power_of_ten(int exponent);

/// Throws UsageError for what the types do not allow, naming both.
[[nodiscard]] Typed infer(const TableView& table, const Expression& expression);
/// The type in which two operands meet. Throws UsageError where they cannot.
[[nodiscard]] DataType common_type(Operation operation, const DataType& left, const DataType& right);
/// A literal in another type, where that can be had without loss at this time.
[[nodiscard]] std::optional<Expression> fold(const Expression& literal, const DataType& type);
/// The range of a value after a cast that keeps its order; nothing where that is not known.
[[nodiscard]] std::optional<ValueRange> cast_range(const Typed& from, const DataType& to);

}  // namespace headrace::fetch
