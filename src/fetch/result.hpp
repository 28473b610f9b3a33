#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fetch/compiler.hpp"

/// What a kernel left, as columns.
namespace headrace::fetch {

/// Fills a ResultColumn from registers, one value after the other.
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

/// Registers that a kernel has emitted: values and whether they are there, `count` of each.
[[nodiscard]] ResultColumn emitted_column(const DataType& type, std::span<const std::int64_t> values,
                                          std::span<const std::uint8_t> valid);

/// The groups that have rows, from the states of the device; `tables` are its key tables.
[[nodiscard]] std::vector<ResultColumn> group_columns(const Compiled& compiled, std::span<const std::uint64_t> states,
                                                      std::span<const std::vector<std::uint64_t>> tables);

}  // namespace headrace::fetch
