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

/// What is known of a column of a table before it is read.
struct ColumnFacts {
  std::string name;
  DataType type;
  bool nullable = true;
  std::optional<ValueRange> range;  ///< Lets a group-by address its groups directly.
  /// For a column of strings: what its indices stand for, in any order. Without one, indices order as the strings do.
  const Dictionary* dictionary = nullptr;
};

/// A table on a device, borrowed: `fragments[f][c]` is fragment f of column c, and all columns of a fragment are of one
/// length. Fragments have at most 2^31 rows together.
struct TableView {
  std::vector<ColumnFacts> columns;
  std::vector<std::vector<ColumnView>> fragments;
  [[nodiscard]] std::int64_t rows() const noexcept;
};

enum class Aggregate : std::uint8_t {
  count_rows,  ///< Takes no value.
  count,       ///< Values that are there.
  sum,      ///< Exact in 128 bits for integers (as decimal128(38, 0)) and decimals; float64 for floats. Missing of no
            ///< value.
  average,  ///< float64.
  min,
  max,
};

struct AggregateCall {
  Aggregate function = Aggregate::count_rows;
  std::optional<Expression> value{};
};

/// By the value of that number. Missing values come last either way, and among floats NaN before them.
struct Order {
  std::uint32_t value = 0;
  bool descending = false;
};

/// A scan: the rows that `filter` is true for, then either grouped (where there are keys or aggregates; the result has
/// the keys first and then the aggregates, in no particular order) or as `values` of each row: in the table's order, or
/// in `order`, where rows that are equal keep that of the table.
struct Query {
  std::optional<Expression> filter{};
  std::vector<Expression> keys{};  ///< At most kKeysMax.
  std::vector<AggregateCall> aggregates{};
  std::vector<Expression> values{};
  std::vector<Order> order{};  ///< The order of `values` alone: groups are few, and ordered by whoever reads them.
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();  ///< Most rows of `values`, the first ones.
};

inline constexpr std::size_t kKeysMax = 4;

/// A column of a result, in host memory, in Arrow's layout.
struct ResultColumn {
  DataType type;
  std::int64_t length = 0;
  std::vector<std::byte> values;
  std::vector<std::uint8_t> validity;  ///< Empty where no value is missing.
  std::int64_t null_count = 0;
  std::shared_ptr<const Dictionary> dictionary = {};  ///< What the indices of a table's column of strings stand for.
};

/// What a scan did, for explain() and for figures.
struct ScanReport {
  std::string groups;  ///< "none", "direct, in 12 kB a block", "direct, 1,000 groups", "hashed, 65,536 slots", …
  std::uint64_t read_bytes = 0;  ///< Bytes of the columns that the query names, counted once.
  double seconds = 0;            ///< From the launch until the kernel has ended.
  double order_seconds = 0;      ///< The time that ordering its rows on the device took.
  Time began{};                  ///< When the first kernel was started, by SteadyClock,
  Time ended{};                  ///< and when the last had ended.
};

struct ScanResult {
  std::vector<ResultColumn> columns;
  ScanReport report;
};

/// Runs a query on the device of `stream`, and waits for it. Throws UsageError for what the types do not allow and for
/// values that do not fit (an integer or decimal beyond 64 bits, a cast that loses a value), DeviceError when the
/// device fails or lacks memory.
[[nodiscard]] ScanResult scan(StreamRef stream, const TableView& table, const Query& query);

/// How scan() would run the query, as lines of text: types, program and grouping. Throws as scan() does.
[[nodiscard]] std::string explain(const TableView& table, const Query& query, const Device& device);

/// The types of the columns that scan() would give.
[[nodiscard]] std::vector<DataType> result_types(const TableView& table, const Query& query);

/// A first look at a table: fills `range` and `nullable` of columns that have no range and a type that has one. What it
/// took, of all scans together.
ScanReport look(StreamRef stream, TableView& table);

}  // namespace headrace::fetch
