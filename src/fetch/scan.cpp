#include "headrace/fetch/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fetch/result.hpp"
#include "fetch/rows.hpp"
#include "fetch/run.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr std::uint64_t kPlacesGrowth = 16;
constexpr std::uint64_t kPlacesMax = std::uint64_t{1} << 33;
constexpr std::uint32_t kCoreCopies = 4;

CompileOptions options_for(const Device& device) {
  if (device.kind() != DeviceKind::cpu) return {};
  return {.copies_max = kCoreCopies, .local_words = kCoreWords, .holds_groups = false};
}

std::string describe_groups(const Compiled& compiled) {
  const Program& program = compiled.program;
  if (compiled.keys.empty() && compiled.aggregates.empty()) return "none";
  const bool hashed = std::ranges::any_of(compiled.steps, [](const KeyStep& step) { return step.op != Op::key; });
  std::string text = hashed ? fmt::format("hashed into {} places, ", compiled.places) : std::string();
  text += fmt::format("{} addressed directly", program.groups);
  if (program.copies == 0) {
    text += " in device memory";
    return program.held == 0 ? text : text + fmt::format(", {} of them in a block's", program.held);
  }
  return text + fmt::format(" in a block's memory, {} {}", program.copies, program.copies == 1 ? "copy" : "copies");
}

bool groups_rows(const Query& query) { return !query.keys.empty() || !query.aggregates.empty(); }

ScanResult scan_groups(StreamRef stream, const TableView& table, const Query& query) {
  CompileOptions options = options_for(stream.device());
  ScanResult result;
  for (; options.places <= kPlacesMax; options.places *= kPlacesGrowth) {
    const Compiled compiled = compile(table, query, options);
    Run run(stream, table, compiled);
    run.prepare_groups();
    if (!run.execute(run.tiles(), result.report)) continue;
    result.report.groups = describe_groups(compiled);
    result.report.read_bytes = run.read_bytes();
    result.columns = group_columns(compiled, run.states(), run.tables());
    return result;
  }
  throw UsageError(fmt::format("a group-by has more than {} groups", kPlacesMax));
}

/// The program that only counts the rows of each tile that the filter lets through.
Compiled only_filter(const Compiled& compiled) {
  Compiled counting = compiled;
  counting.program.code_count = compiled.filter_end;
  counting.program.code[counting.program.code_count++] = {.op = Op::tally};
  counting.values.clear();
  return counting;
}

/// Rows of each tile where there is no filter.
std::vector<std::int64_t> all_tile_rows(const TableView& table) {
  std::vector<std::int64_t> rows;
  for (const auto& fragment : table.fragments) {
    for (std::int64_t left = fragment.empty() ? 0 : fragment[0].length; left > 0; left -= kTileRows) {
      rows.push_back(std::min(left, kTileRows));
    }
  }
  return rows;
}

ScanResult scan_values(StreamRef stream, const TableView& table, const Query& query) {
  if (query.limit < 0) throw UsageError(fmt::format("a limit is 0 or more, not {}", query.limit));
  const Compiled compiled = compile(table, query, options_for(stream.device()));
  Run run(stream, table, compiled);
  ScanResult result{.columns = {}, .report = {.groups = "none", .read_bytes = run.read_bytes()}};
  std::vector<std::int64_t> tile_rows;
  if (query.filter) {
    const Compiled counting = only_filter(compiled);
    Run count(stream, table, counting);
    count.prepare_values(0, std::vector<std::int64_t>(static_cast<std::size_t>(count.tiles())));
    static_cast<void>(count.execute(count.tiles(), result.report));
    tile_rows = count.tile_rows();
  } else {
    tile_rows = all_tile_rows(table);
  }
  // An order decides only after all rows which are the first.
  const std::int64_t wanted = query.order.empty() ? query.limit : std::numeric_limits<std::int64_t>::max();
  std::int64_t rows = 0;
  std::int64_t tiles = 0;
  for (std::int64_t& of_tile : tile_rows) {
    if (rows < wanted) ++tiles;
    rows += std::exchange(of_tile, rows);
  }
  run.prepare_values(std::min(rows, wanted), tile_rows);
  static_cast<void>(run.execute(tiles, result.report));
  if (!query.order.empty()) run.order(query.order, query.limit, result.report);
  for (std::size_t v = 0; v < compiled.values.size(); ++v) result.columns.push_back(run.output(v));
  return result;
}

/// Whether a first look at a column can tell its range.
bool has_range(const DataType& type) {
  if (type.id == Type::boolean) return false;
  return type.id != Type::decimal128 || (type.precision <= 18 && type.scale >= 0);
}

void learn(ColumnFacts& facts, const ResultColumn& least, const ResultColumn& greatest) {
  if (least.null_count > 0) {
    facts.range = ValueRange{0, 0};  // of no value
    return;
  }
  const ValueRange range{bits_at(least, 0), bits_at(greatest, 0)};
  if (is_float(facts.type.id) && (std::isnan(as_double(range.least)) || std::isnan(as_double(range.greatest)))) return;
  if (facts.type.id == Type::uint64 && (range.least < 0 || range.greatest < 0)) return;
  facts.range = range;
}

/// Indices into a dictionary are those that it has given out.
void learn_indices(TableView& table, std::uint32_t column) {
  ColumnFacts& facts = table.columns[column];
  const auto size = static_cast<std::int64_t>(facts.dictionary->size());
  facts.range = ValueRange{0, std::max<std::int64_t>(size, 1) - 1};
  facts.nullable = std::ranges::any_of(table.fragments, [&](const std::vector<ColumnView>& fragment) {
    return fragment[column].validity != nullptr && fragment[column].null_count != 0;
  });
}

}  // namespace

ScanResult scan(StreamRef stream, const TableView& table, const Query& query) {
  return groups_rows(query) ? scan_groups(stream, table, query) : scan_values(stream, table, query);
}

std::vector<DataType> result_types(const TableView& table, const Query& query) {
  std::vector<DataType> types;
  for (const Expression& key : query.keys) types.push_back(infer(table, key).type);
  for (const AggregateCall& call : query.aggregates) {
    types.push_back(aggregate_type(call.function, call.value ? infer(table, *call.value).type : DataType{}));
  }
  for (const Expression& value : query.values) types.push_back(infer(table, value).type);
  return types;
}

std::string explain(const TableView& table, const Query& query, const Device& device) {
  const Compiled compiled = compile(table, query, options_for(device));
  std::vector<std::string> names;
  for (const std::uint32_t column : compiled.columns) names.push_back(table.columns[column].name);
  std::string types;
  for (const DataType& type : result_types(table, query)) types += (types.empty() ? "" : ", ") + to_string(type);
  return fmt::format("reads {}\ngives {}\ngroups: {}\nfor each row\n{}", fmt::join(names, ", "), types,
                     describe_groups(compiled), to_string(compiled.program, names));
}

ScanReport look(StreamRef stream, TableView& table) {
  // A count of its values with each of three aggregates, the count of rows once.
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
