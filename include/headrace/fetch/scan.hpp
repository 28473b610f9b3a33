#pragma once

// scan() filters, projects and groups columns that lie on a device. Tables, which fetch their columns, are in
// headrace/fetch/table.hpp.
//
//     auto mean_by_key = [](headrace::StreamRef stream, const headrace::fetch::TableView& table) {
//       headrace::fetch::Query query;
//       query.keys = {headrace::fetch::Expression::column(0)};
//       query.aggregates = {{headrace::fetch::Aggregate::average, headrace::fetch::Expression::column(1)}};
//       headrace::fetch::ScanResult result = headrace::fetch::scan(stream, table, query);
//       return result.columns;  // the keys, then the means
//     };

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/detail/dictionary.hpp"
#include "headrace/fetch/expression.hpp"

namespace headrace::fetch {

/// Facts about a column of a table that are known before it is read.
struct ColumnFacts {
  std::string name;                 ///< The name, for errors and explain().
  DataType type;                    ///< The type of its values.
  bool nullable = true;             ///< Whether values may be missing.
  std::optional<ValueRange> range;  ///< Lets a group-by address its groups directly.
  /// The dictionary of a column of strings, in any order. Without one, indices are ordered as the strings are.
  const Dictionary* dictionary = nullptr;
};

/// A table on a device, borrowed: `fragments[f][c]` is fragment f of column c, and all columns of a fragment have the
/// same length. Fragments have at most 2^31 rows together.
struct TableView {
  std::vector<ColumnFacts> columns;                  ///< Facts about each column.
  std::vector<std::vector<ColumnView>> fragments;    ///< The values, by fragment and column.
  [[nodiscard]] std::int64_t rows() const noexcept;  ///< Rows of all fragments together.
};

/// Functions of the values of a group.
enum class Aggregate : std::uint8_t {
  count_rows,  ///< Takes no value.
  count,       ///< Values that are not missing.
  /// Exact in 128 bits for integers (as decimal128(38, 0)) and decimals; float64 for floats. Missing if all values are
  /// missing.
  sum,
  average,  ///< The mean, as float64.
  min,      ///< The least value.
  max,      ///< The greatest value.
};

/// One aggregate of a query.
struct AggregateCall {
  Aggregate function = Aggregate::count_rows;  ///< What is computed.
  std::optional<Expression> value{};           ///< Its argument; empty for count_rows.
};

/// One key of an ordering. Missing values come last in either direction, and NaN just before them.
struct Order {
  std::uint32_t value = 0;  ///< The number of the key in Query::values.
  bool descending = false;  ///< Greatest first.
};

/// What a scan computes from the rows for which `filter` is true. With keys or aggregates it groups the rows: the
/// result has the keys first and then the aggregates, its rows in no particular order. Otherwise it computes `values`
/// of each row, in the table's order or in `order`, where equal rows keep the table's order.
struct Query {
  std::optional<Expression> filter{};       ///< A boolean; empty keeps all rows.
  std::vector<Expression> keys{};           ///< At most kKeysMax.
  std::vector<AggregateCall> aggregates{};  ///< The aggregates of each group.
  std::vector<Expression> values{};         ///< The values computed from each row.
  std::vector<Order> order{};  ///< The order of rows of `values`, most significant key first. Groups are not ordered.
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();  ///< Most rows of `values`; the first ones are kept.
};

/// Most keys of a query.
inline constexpr std::size_t kKeysMax = 4;

/// A column of a result, in host memory, in Arrow's layout.
struct ResultColumn {
  DataType type;                                      ///< The type of its values.
  std::int64_t length = 0;                            ///< Values, missing ones included.
  std::vector<std::byte> values;                      ///< Arrow's buffer of values.
  std::vector<std::uint8_t> validity;                 ///< Arrow's bitmap of present values; empty if none is missing.
  std::int64_t null_count = 0;                        ///< Missing values.
  std::shared_ptr<const Dictionary> dictionary = {};  ///< The dictionary of a column of strings.
};

/// How a scan ran, for explain() and benchmarks.
struct ScanReport {
  std::string groups;            ///< "none", "12 addressed directly in a block's memory, 4 copies", …
  std::uint64_t read_bytes = 0;  ///< Bytes of the columns that the query names, counted once.
  double seconds = 0;            ///< From the launch until the kernel has ended.
  double order_seconds = 0;      ///< Time for ordering the rows on the device.
  Time began{};                  ///< When the first kernel started, by SteadyClock.
  Time ended{};                  ///< When the last kernel had ended.
};

/// The answer to a query.
struct ScanResult {
  std::vector<ResultColumn> columns;  ///< Keys and aggregates, or values, in the query's order.
  ScanReport report;                  ///< How it was computed.
};

/// Runs a query on the device of `stream`, and waits for it. Throws UsageError for types that the query does not allow
/// and for values that do not fit (an integer or decimal beyond 64 bits, a cast that loses a value), DeviceError if the
/// device fails or lacks memory.
[[nodiscard]] ScanResult scan(StreamRef stream, const TableView& table, const Query& query);

/// How scan() would run the query, as lines of text: types, program and grouping. Throws as scan() does.
[[nodiscard]] std::string explain(const TableView& table, const Query& query, const Device& device);

/// The types of the columns that scan() would return. Throws UsageError as scan() does for types.
[[nodiscard]] std::vector<DataType> result_types(const TableView& table, const Query& query);

/// Takes a first look at a table: fills in `range` and `nullable` of columns that have no range yet and whose type has
/// one. Returns the report of all scans that it took together.
ScanReport look(StreamRef stream, TableView& table);

}  // namespace headrace::fetch
