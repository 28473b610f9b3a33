#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fetch/program/program.hpp"
#include "fetch/query/typing.hpp"

/// Compiles a query to the program that the kernel runs, and describes how to get keys back from its states.
namespace headrace::fetch {

/// One step in computing a group's number from its keys.
struct KeyStep {
  Op op = Op::key;  ///< key, wide_key or intern.
  std::uint32_t key = 0;
  std::uint32_t table = 0;
  std::int64_t least = 0;    ///< The least value of a key.
  std::uint64_t domain = 1;  ///< Digits of a key or wide key; the last is a missing value if `nullable`.
  bool nullable = false;
};

/// Where an aggregate's numbers are: indices into Program::states.
struct AggregatePlace {
  Aggregate function = Aggregate::count_rows;
  Typed value{};
  DataType result{};
  std::uint32_t count = 0;  ///< State that counts values; state 0, the rows, if none is missing.
  std::uint32_t state = 0;
  std::optional<std::uint32_t> high_state{};       ///< For wide decimals: sums the high halves; `state` the low ones.
  std::shared_ptr<const DictionaryOrder> order{};  ///< For an extreme of strings: the order of the rank in `state`.
};

/// Position of a query's value among a program's outputs.
struct ValuePlace {
  std::uint32_t output = 0;
  bool wide = false;  ///< A decimal in two outputs: the low half in `output`, the high half in the next one.
};

using Ranks = std::shared_ptr<const std::vector<std::int32_t>>;

struct Compiled {
  Program program;
  std::vector<std::uint32_t> columns;  ///< By number in the program: the column of the table.
  std::vector<Typed> keys;
  std::vector<KeyStep> steps;
  std::vector<AggregatePlace> aggregates;
  std::vector<Typed> values;
  std::vector<ValuePlace> outputs;  ///< The place of each value.
  std::uint32_t output_count = 0;
  bool narrow_sums = false;        ///< Some columns of wide decimals are summed in 64 bits.
  std::vector<Ranks> ranks;        ///< By number in the program.
  std::vector<Ranks> order_ranks;  ///< By key of the order; null except for strings with a dictionary.
  std::uint32_t tables = 0;
  std::uint64_t places = 0;      ///< The places of each key table.
  std::uint32_t filter_end = 0;  ///< Number of instructions up to the end of the filter.
};

struct CompileOptions {
  /// Keys that fit in each key table, a power of two.
  std::uint64_t places = std::uint64_t{1} << 16;
  /// Most copies of its states that a block keeps. One copy per thread avoids conflicts between threads; a few let a
  /// core add to a group again before its previous addition has finished.
  std::uint32_t copies_max = kScanThreads;
  /// The same if the block keeps only counts: CUDA combines the additions of a warp's threads to one word.
  std::uint32_t count_copies_max = 1;
  std::uint32_t local_words = kBlockWords;  ///< Words of block memory for states.
  /// Whether a block that has no room for all groups keeps the first groups that it meets. Some groups are far more
  /// frequent than others, and threads that add to one word of device memory wait for each other.
  bool holds_groups = true;
  /// Whether sums of wide decimals add both halves. Few columns that may hold values of more than 64 bits actually do,
  /// and adding both halves takes twice as long, so it is done only after a narrow sum has met such a value.
  bool wide_sums = false;
  /// Whether the program compares rows with a bound in the query's order, and appends those before it. Their row
  /// numbers become an additional last output.
  bool bounded = false;
  /// Whether the year of a timestamp with a known range is looked up in a table. A CPU core's vector units compute it
  /// faster.
  bool year_tables = true;
};

/// Throws UsageError if the types do not allow an operation, or the query is too long.
[[nodiscard]] Compiled compile(const TableView& table, const Query& query, const CompileOptions& options);

/// The type of an aggregate's result. Throws UsageError if the aggregate does not take the value's type.
[[nodiscard]] DataType aggregate_type(Aggregate function, const DataType& value);
[[nodiscard]] std::string to_string(const Program& program, const std::vector<std::string>& columns);

/// How many groups a block can hold, each with its number and states; 0 if that is disabled or impossible.
[[nodiscard]] std::uint32_t held_groups(const Program& program, const CompileOptions& options) noexcept;
/// How many copies of all states a block keeps; 0 if they do not fit.
[[nodiscard]] std::uint32_t local_copies(const Program& program, const CompileOptions& options) noexcept;

}  // namespace headrace::fetch
