#pragma once

#include <cstdint>
#include <optional>

#include "fetch/program/program.hpp"
#include "headrace/fetch/scan.hpp"

/// The type of an expression, and the known facts about its values.
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
/// The values of an integer type; for uint64, those that fit in an int64.
[[nodiscard]] ValueRange range_of(Type integer) noexcept;
/// The equivalent comparison with exchanged operands; other operations are returned unchanged.
[[nodiscard]] Operation mirrored(Operation comparison) noexcept;
/// Decimal digits that 64 bits can hold.
inline constexpr int kDigitsMax = 18;
/// 10^exponent, for 0 to 18.
[[nodiscard]] std::int64_t power_of_ten(int exponent);

/// Throws UsageError, naming the types, for an operation that they do not allow.
[[nodiscard]] Typed infer(const TableView& table, const Expression& expression);
/// The type in which two operands are combined. Throws UsageError if there is none.
[[nodiscard]] DataType common_type(Operation operation, const DataType& left, const DataType& right);
/// Converts a literal to another type; empty unless this is possible now and without loss.
[[nodiscard]] std::optional<Expression> fold(const Expression& literal, const DataType& type);
/// The range of a value after an order-preserving cast; empty if it is not known.
[[nodiscard]] std::optional<ValueRange> cast_range(const Typed& from, const DataType& to);

}  // namespace headrace::fetch
