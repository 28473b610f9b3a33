#include "fetch/scan/look.hpp"

#include <algorithm>
#include <cmath>

#include "fetch/program/program.hpp"
#include "fetch/program/rows.hpp"
#include "fetch/scan/result.hpp"

namespace headrace::fetch {

namespace {

/// Whether look() can find the range of a column of this type.
bool has_range(const DataType& type) {
  if (type.id == Type::boolean) return false;
  return type.id != Type::decimal128 || (type.precision <= 18 && type.scale >= 0);
}

void learn(ColumnFacts& facts, const ResultColumn& least, const ResultColumn& greatest) {
  if (least.null_count > 0) {
    facts.range = ValueRange{0, 0};  // the column has no value
    return;
  }
  const ValueRange range{bits_at(least, 0), bits_at(greatest, 0)};
  if (is_float(facts.type.id) && (std::isnan(as_double(range.least)) || std::isnan(as_double(range.greatest)))) return;
  if (facts.type.id == Type::uint64 && (range.least < 0 || range.greatest < 0)) return;
  facts.range = range;
}

}  // namespace

void learn_indices(TableView& table, std::uint32_t column) {
  ColumnFacts& facts = table.columns[column];
  const auto size = static_cast<std::int64_t>(facts.dictionary->size());
  facts.range = ValueRange{0, std::max<std::int64_t>(size, 1) - 1};
  facts.nullable = std::ranges::any_of(table.fragments, [&](const std::vector<ColumnView>& fragment) {
    return fragment[column].validity != nullptr && fragment[column].null_count != 0;
  });
}

ScanReport look(StreamRef stream, TableView& table) {
  // Columns per query: three aggregates and their counts of values take 5 states, besides the count of rows.
  constexpr std::size_t kAtOnce = (kStatesMax - 1) / 5;
  ScanReport report;
  std::vector<std::uint32_t> unknown;
  for (std::uint32_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].dictionary != nullptr) {
      learn_indices(table, c);
    } else if (!table.columns[c].range && has_range(table.columns[c].type)) {
      unknown.push_back(c);
    }
  }
  for (std::size_t from = 0; from < unknown.size(); from += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, unknown.size() - from);
    Query query;
    for (std::size_t i = from; i < from + count; ++i) {
      for (const Aggregate function : {Aggregate::count, Aggregate::min, Aggregate::max}) {
        query.aggregates.push_back({.function = function, .value = Expression::column(unknown[i])});
      }
    }
    const ScanResult result = scan(stream, table, query);
    report.groups = result.report.groups;
    report.read_bytes += result.report.read_bytes;
    report.seconds += result.report.seconds;
    if (from == 0) report.began = result.report.began;
    report.ended = result.report.ended;
    for (std::size_t i = 0; i < count; ++i) {
      ColumnFacts& facts = table.columns[unknown[from + i]];
      facts.nullable = bits_at(result.columns[3 * i], 0) < table.rows();
      learn(facts, result.columns[3 * i + 1], result.columns[3 * i + 2]);
    }
  }
  return report;
}

}  // namespace headrace::fetch
