#include "headrace/fetch/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "fetch/program/rows.hpp"
#include "fetch/scan/first_rows.hpp"
#include "fetch/scan/result.hpp"
#include "fetch/scan/run.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr std::uint64_t kPlacesGrowth = 16;
constexpr std::uint64_t kPlacesMax = std::uint64_t{1} << 33;
constexpr std::uint32_t kCoreCopies = 4;

CompileOptions options_for(const Device& device) {
  if (!device.properties().host_cores) return {};
  return {.copies_max = kCoreCopies,
          .count_copies_max = kCoreCopies,
          .local_words = kCoreWords,
          .holds_groups = false,
          .year_tables = false};
}

std::string describe_groups(const Compiled& compiled) {
  const Program& program = compiled.program;
  if (compiled.keys.empty() && compiled.aggregates.empty()) return "none";
  const bool hashed = std::ranges::any_of(compiled.steps, [](const KeyStep& step) { return step.op != Op::key; });
  std::string text = hashed ? fmt::format("hashed into {} places, ", compiled.places) : std::string();
  text += fmt::format("{} addressed directly", program.groups);
  if (program.copies == 0) {
    text += " in device memory";
    return program.held == 0 ? text : text + fmt::format(", {} of them in a block's memory", program.held);
  }
  return text + fmt::format(" in a block's memory, {} {}", program.copies, program.copies == 1 ? "copy" : "copies");
}

bool groups_rows(const Query& query) { return !query.keys.empty() || !query.aggregates.empty(); }

ScanResult scan_groups(StreamRef stream, const TableView& table, const Query& query) {
  CompileOptions options = options_for(stream.device());
  ScanResult result;
  while (options.places <= kPlacesMax) {
    const Compiled compiled = compile(table, query, options);
    Run run(stream, table, compiled);
    run.prepare_groups();
    if (!run.execute(run.tiles(), result.report)) {
      if (run.is_too_wide()) {
        options.wide_sums = true;
      } else {
        options.places *= kPlacesGrowth;
      }
      continue;
    }
    result.report.groups = describe_groups(compiled);
    result.report.read_bytes = run.read_bytes();
    result.columns = group_columns(compiled, run.states(), run.tables());
    return result;
  }
  throw UsageError(fmt::format("a group-by has more than {} groups", kPlacesMax));
}

/// A program that only counts the rows of each tile that pass the filter.
Compiled only_filter(const Compiled& compiled) {
  Compiled counting = compiled;
  counting.program.code_count = compiled.filter_end;
  counting.program.code[counting.program.code_count++] = {.op = Op::tally};
  counting.values.clear();
  counting.outputs.clear();
  counting.output_count = 0;
  return counting;
}

/// The rows of each tile when there is no filter.
std::vector<std::int64_t> all_tile_rows(const TableView& table) {
  std::vector<std::int64_t> rows;
  for (const auto& fragment : table.fragments) {
    for (std::int64_t left = fragment.empty() ? 0 : fragment[0].length; left > 0; left -= kTileRows) {
      rows.push_back(std::min<std::int64_t>(left, kTileRows));
    }
  }
  return rows;
}

ScanResult scan_values(StreamRef stream, const TableView& table, const Query& query) {
  if (query.limit < 0) throw UsageError(fmt::format("a limit must be 0 or more, not {}", query.limit));
  if (const auto first = compile_first_rows(table, query, options_for(stream.device()))) {
    return scan_first_rows(stream, table, query, *first);
  }
  const Compiled compiled = compile(table, query, options_for(stream.device()));
  Run run(stream, table, compiled);
  ScanResult result{.columns = {}, .report = {.groups = "none", .read_bytes = run.read_bytes()}};
  std::vector<std::int64_t> tile_rows;
  if (query.filter) {
    const Compiled counting = only_filter(compiled);
    Run count(stream, table, counting);
    count.prepare_values(0, std::vector<std::int64_t>(count.tiles()));
    static_cast<void>(count.execute(count.tiles(), result.report));
    tile_rows = count.tile_rows();
  } else {
    tile_rows = all_tile_rows(table);
  }
  // With an order, all rows are needed to find the first ones.
  const std::int64_t wanted = query.order.empty() ? query.limit : std::numeric_limits<std::int64_t>::max();
  std::int64_t rows = 0;
  std::uint32_t tiles = 0;
  for (std::int64_t& of_tile : tile_rows) {
    if (rows < wanted) ++tiles;
    rows += std::exchange(of_tile, rows);
  }
  run.prepare_values(std::min(rows, wanted), std::move(tile_rows));
  static_cast<void>(run.execute(tiles, result.report));
  if (!query.order.empty()) run.order(query.order, query.limit, result.report);
  for (std::size_t v = 0; v < compiled.values.size(); ++v) result.columns.push_back(run.output(v));
  return result;
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
  const auto first = compile_first_rows(table, query, options_for(device));
  const Compiled compiled = first ? *first : compile(table, query, options_for(device));
  std::vector<std::string> names;
  for (const std::uint32_t column : compiled.columns) names.push_back(table.columns[column].name);
  std::string types;
  for (const DataType& type : result_types(table, query)) types += (types.empty() ? "" : ", ") + to_string(type);
  return fmt::format("reads {}\ngives {}\ngroups: {}\nfor each row\n{}", fmt::join(names, ", "), types,
                     describe_groups(compiled), to_string(compiled.program, names));
}

}  // namespace headrace::fetch
