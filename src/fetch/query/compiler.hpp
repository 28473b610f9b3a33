#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fetch/program/program.hpp"
#include "fetch/query/typing.hpp"

/// From a query to the program that the kernel runs, and back from its states to keys.
namespace headrace::fetch {

/// How a group's number was made, a step a time.
struct KeyStep {
  Op op = Op::key;  ///< key, wide_key or intern.
  std::uint32_t key = 0;
  std::uint32_t table = 0;
  std::int64_t least = 0;    ///< The least value of a key.
  std::uint64_t domain = 1;  ///< The domain of a key or a wide key; its last value is the missing one if `nullable`.
  bool nullable = false;
};

/// Where the numbers of an aggregate are: states, by their place in Program::states.
struct AggregatePlace {
  Aggregate function = Aggregate::count_rows;
  Typed value{};
  DataType result{};
  std::uint32_t count = 0;  ///< The values that are there: state 0 where none is missing.
  std::uint32_t state = 0;
  std::optional<std::uint32_t> high_state{};       ///< The high halves of a sum in two, beside the low ones in `state`.
  std::shared_ptr<const DictionaryOrder> order{};  ///< In which the state of an extreme of strings is a place.
};

/// Where a value of each row is among a program's outputs.
struct ValuePlace {
  std::uint32_t output = 0;
  bool wide = false;  ///< A decimal in two: its low half there, its high half in the next.
};

using Ranks = std::shared_ptr<const std::vector<std::int32_t>>;

struct Compiled {
  Program program;
  std::vector<std::uint32_t> columns;  ///< The columns of the table, by their number in the program.
  std::vector<Typed> keys;
  std::vector<KeyStep> steps;
  std::vector<AggregatePlace> aggregates;
  std::vector<Typed> values;
  std::vector<ValuePlace> outputs;  ///< The place of each value.
  std::uint32_t output_count = 0;
  bool narrow_sums = false;        ///< Sums that could be made of wide decimals are made in 64 bits.
  std::vector<Ranks> ranks;        ///< By their number in the program.
  std::vector<Ranks> order_ranks;  ///< By column of the order: of strings that have a dictionary, else null.
  std::uint32_t tables = 0;
  std::uint64_t places = 0;      ///< The places of each key table.
  std::uint32_t filter_end = 0;  ///< Instructions of the filter.
};

struct CompileOptions {
  /// How many keys a key table has room for, a power of two, where there have to be tables.
  std::uint64_t places = std::uint64_t{1} << 16;
  /// Most copies of its states that a block keeps: one for each thread makes adding to them free of conflicts, a few
  /// let a core add to one group again before it is done with the last time.
  std::uint32_t copies_max = kScanThreads;
  /// The same where nothing but counts is kept: CUDA adds up those of a warp's threads that meet in a word.
  std::uint32_t count_copies_max = 1;
  std::uint32_t local_words = kBlockWords;  ///< The words of a block's memory for states.
  /// Whether a block gathers the groups that it meets first where there is no room for all. Some groups are met far
  /// more often than others, and threads that add to one word in the device's memory wait for each other.
  bool holds_groups = true;
  /// Whether sums of decimals that may take more than 64 bits are made of both halves. Few columns that may have such
  /// values do, and adding up both halves takes twice as long: it is done once a narrow sum has met one.
  bool wide_sums = false;
  /// Whether rows are held against a bound in the order of the query, and appended with their numbers in the table as
  /// the last output, which is no value's.
  bool bounded = false;
  /// Whether years of stamps whose range is known are looked up: a core's vectors compute them faster.
  bool year_tables = true;
};

/// Throws UsageError for what the types do not allow, and for a query that is too long.
[[nodiscard]] Compiled compile(const TableView& table, const Query& query, const CompileOptions& options);

/// The type of an aggregate's result. Throws UsageError where the value's type has none.
[[nodiscard]] DataType aggregate_type(Aggregate function, const DataType& value);
[[nodiscard]] std::string to_string(const Program& program, const std::vector<std::string>& columns);

/// How many groups a block can hold the states of, each under its number; 0 where that is not wanted or cannot be.
[[nodiscard]] std::uint32_t held_groups(const Program& program, const CompileOptions& options) noexcept;
/// How many copies of the states a block keeps; 0 where they do not fit it.
[[nodiscard]] std::uint32_t local_copies(const Program& program, const CompileOptions& options) noexcept;

}  // namespace headrace::fetch
