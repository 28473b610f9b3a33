#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fetch/query/compiler.hpp"

/// What a kernel left, as columns.
namespace headrace::fetch {

/// Fills a ResultColumn of `length` values from registers, one value after the other.
class ColumnBuilder {
 public:
  ColumnBuilder(const DataType& type, std::int64_t length);
  /// `bits` as a register holds them.
  void append(std::int64_t bits, bool valid) { append_wide(bits, valid); }
  /// The same for a decimal that takes 128 bits.
  void append_wide(__int128 value, bool valid);
  [[nodiscard]] ResultColumn finish();

 private:
  ResultColumn column_;
  std::uint32_t bits_;
};

/// Registers that a kernel has emitted: values and whether they are there, as many of each.
/// @param high  the high halves of wide decimals, whose low halves `values` are then; else empty.
[[nodiscard]] ResultColumn emitted_column(const DataType& type, std::span<const std::int64_t> values,
                                          std::span<const std::int64_t> high, std::span<const std::uint8_t> valid);

/// The groups that have rows, from the states of the device; `tables` are its key tables.
[[nodiscard]] std::vector<ResultColumn> group_columns(const Compiled& compiled, std::span<const std::uint64_t> states,
                                                      std::span<const std::vector<std::uint64_t>> tables);

/// Whether row `row` of a result has a value.
[[nodiscard]] bool has_value(const ResultColumn& column, std::int64_t row) noexcept;
/// The value as a literal has it: an integer, a float's bits as a double, a decimal that fits 64 bits.
[[nodiscard]] std::int64_t bits_at(const ResultColumn& column, std::int64_t row) noexcept;
/// The same of a decimal in 128 bits.
[[nodiscard]] __int128 wide_at(const ResultColumn& column, std::int64_t row) noexcept;
/// The same of either; 0 where there is no value.
[[nodiscard]] __int128 value_at(const ResultColumn& column, std::int64_t row) noexcept;

/// Throws UsageError for a sum that takes more than the 38 digits of a decimal128.
void check_sum(__int128 sum);

/// sum / 10^scale / count, rounded once.
[[nodiscard]] double average_of(__int128 sum, int scale, std::int64_t count);

}  // namespace headrace::fetch
