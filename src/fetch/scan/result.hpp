#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fetch/query/compiler.hpp"

/// Converts a kernel's output to columns.
namespace headrace::fetch {

/// Fills a ResultColumn of `length` values from registers, value by value.
class ColumnBuilder {
 public:
  ColumnBuilder(const DataType& type, std::int64_t length);
  /// Appends a value; `bits` as a register holds them.
  void append(std::int64_t bits, bool valid) { append_wide(bits, valid); }
  /// The same for a decimal that takes 128 bits.
  void append_wide(__int128 value, bool valid);
  [[nodiscard]] ResultColumn finish();

 private:
  ResultColumn column_;
  std::uint32_t bits_;
};

/// A column from the registers that a kernel emitted: values, and as many flags that tell whether each is present.
/// @param high  for wide decimals the high halves, while `values` has the low ones; otherwise empty.
[[nodiscard]] ResultColumn emitted_column(const DataType& type, std::span<const std::int64_t> values,
                                          std::span<const std::int64_t> high, std::span<const std::uint8_t> valid);

/// The columns of all groups with rows, from the device's states and its key tables.
[[nodiscard]] std::vector<ResultColumn> group_columns(const Compiled& compiled, std::span<const std::uint64_t> states,
                                                      std::span<const std::vector<std::uint64_t>> tables);

/// Whether row `row` of a result has a value.
[[nodiscard]] bool has_value(const ResultColumn& column, std::int64_t row) noexcept;
/// The value in the form of a literal: an integer, the bits of a double for a float, or a decimal that fits 64 bits.
[[nodiscard]] std::int64_t bits_at(const ResultColumn& column, std::int64_t row) noexcept;
/// The same for a decimal of 128 bits.
[[nodiscard]] __int128 wide_at(const ResultColumn& column, std::int64_t row) noexcept;
/// The same for any type; 0 if the value is missing.
[[nodiscard]] __int128 value_at(const ResultColumn& column, std::int64_t row) noexcept;

/// Throws UsageError for a sum of more than the 38 digits of a decimal128.
void check_sum(__int128 sum);

/// sum / 10^scale / count, rounded once.
[[nodiscard]] double average_of(__int128 sum, int scale, std::int64_t count);

}  // namespace headrace::fetch
