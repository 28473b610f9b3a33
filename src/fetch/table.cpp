#include "headrace/fetch/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "fetch/host_chunk.hpp"
#include "fetch/known_columns.hpp"
#include "fetch/levels_state.hpp"
#include "fetch/query/need.hpp"
#include "fetch/query/slices.hpp"
#include "fetch/scan/merge.hpp"
#include "fetch/windows.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr std::int64_t kScanRowsMax = std::int64_t{1} << 31;

void add(TableReport& report, const FetchProgress& progress) {
  for (std::size_t level = 0; level < kLevelCount; ++level) {
    report.levels[level].bytes += progress.levels[level].bytes;
    report.levels[level].chunks += progress.levels[level].chunks;
    report.levels[level].hits += progress.levels[level].hits;
    report.levels[level].busy += progress.levels[level].busy;
  }
  report.fetching += progress.elapsed;
}

void add(ScanReport& report, ScanReport&& part);

/// Adds the report of another pass over the same rows. The pruned fragments are the same and are not added.
void add(TableReport& report, TableReport&& pass) {
  add(report.scan, std::move(pass.scan));
  report.windows += pass.windows;
  if (report.streamed.empty()) report.streamed = std::move(pass.streamed);
  for (std::size_t level = 0; level < kLevelCount; ++level) {
    report.levels[level].bytes += pass.levels[level].bytes;
    report.levels[level].chunks += pass.levels[level].chunks;
    report.levels[level].hits += pass.levels[level].hits;
    report.levels[level].busy += pass.levels[level].busy;
  }
  report.fetching += pass.fetching;
  report.waited += pass.waited;
}

void add(ScanReport& report, ScanReport&& part) {
  report.groups = std::move(part.groups);
  report.read_bytes += part.read_bytes;
  report.seconds += part.seconds;
  report.order_seconds += part.order_seconds;
  if (report.began == Time{}) report.began = part.began;
  report.ended = std::max(report.ended, part.ended);
}

}  // namespace

class Table::State {
 public:
  State(Levels levels, std::shared_ptr<Source> source, const FetchOptions& options)
      : levels_(std::move(levels)),
        source_(std::move(source)),
        options_(options),
        stream_(levels_.device()),
        known_(source_) {
    for (const Column& column : source_->columns()) {
      facts_.columns.push_back({.name = {}, .type = level_type(column.type), .nullable = column.nullable, .range = {}});
    }
  }

  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept { return source_; }
  [[nodiscard]] const FetchOptions& options() const noexcept { return options_; }

  [[nodiscard]] TableResult scan(const Query& query, const Watch& watch) {
    levels_.state()->birth.require("querying a table");
    const auto lock = take_turn(watch);
    source_->require_unchanged();  // pruned fragments rely on the files' statistics, too
    const auto slices = slices_of(query, facts_);
    TableResult result = scan_slice(slices.front(), watch);
    for (std::size_t i = 1; i < slices.size(); ++i) {
      TableResult more = scan_slice(slices[i], watch);
      std::ranges::move(more.columns, std::back_inserter(result.columns));
      add(result.report, std::move(more.report));
    }
    return result;
  }

  [[nodiscard]] std::string explain(const Query& query, const Watch& watch) {
    levels_.state()->birth.require("explaining a query of a table");
    const auto lock = take_turn(watch);
    source_->require_unchanged();
    const auto slices = slices_of(query, facts_);
    std::string text =
        with_memory(watch, [&](const QueryGate::Pass&) { return explain_slice(slices.front().query, watch); });
    if (slices.size() > 1) {
      text += fmt::format("the other values do not fit in one program: the scan takes {} passes\n", slices.size());
    }
    return text;
  }

  [[nodiscard]] std::deque<Fragments> windows_of(const Need& need) const {
    // Two windows fit the budget, with room to spare because memory is allocated in slabs.
    const std::size_t share = levels_.statistics(Level::device).budget_bytes / 5 * 2;
    return cut_windows(*source_, need.columns, need.fragments, share, kScanRowsMax);
  }

  void close() {
    source_->close();
    levels_.forget(source_->id());
  }

 private:
  [[nodiscard]] static QueryGate::Poll poll(const Watch& watch) {
    if (!watch) return {};
    return [&watch] { watch({}); };
  }

  /// Serialises the queries of one table.
  [[nodiscard]] std::unique_lock<std::timed_mutex> take_turn(const Watch& watch) {
    constexpr auto kLook = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(kLook)) {
      if (watch) watch({});
    }
    if (source_->closed()) throw UsageError("the table has been closed", Errc::stopped);
    return lock;
  }

  /// Runs `body`, a query that pins memory of the levels, beside other queries. If it runs out of memory that others
  /// may hold, runs it once more, alone. Refuses a query that does not fit alone.
  template <class Body>
  [[nodiscard]] std::invoke_result_t<const Body&, const QueryGate::Pass&> with_memory(const Watch& watch,
                                                                                      const Body& body) {
    QueryGate& gate = levels_.state()->gate;
    {
      const QueryGate::Pass beside = gate.enter(poll(watch));
      try {
        return body(beside);
      } catch (...) {
        rethrow_unless_out_of_memory();
        if (beside.has_been_alone()) throw;
      }
    }
    const QueryGate::Pass alone = gate.enter_alone(poll(watch));
    return body(alone);
  }

  [[nodiscard]] TableResult scan_slice(const Slice& slice, const Watch& watch) {
    const Need need = need_of(slice.query, *source_);
    TableResult result =
        with_memory(watch, [&](const QueryGate::Pass& pass) { return scan_needed(need, pass, watch); });
    name_dictionaries(need, result.columns);
    if (slice.values > 0) result.columns.resize(slice.values);
    return result;
  }

  /// Scans the columns at once if they fit, otherwise in windows. Throws if they turn out not to fit while other
  /// queries were running, because those may have held the memory.
  [[nodiscard]] TableResult scan_needed(const Need& need, const QueryGate::Pass& pass, const Watch& watch) {
    std::string why = too_much(need);
    if (why.empty()) {
      try {
        return scan_at_once(need, watch);
      } catch (...) {
        rethrow_unless_out_of_device_memory();
        if (!pass.has_been_alone()) throw;
        why = "the device had no memory for all columns together";
      }
    }
    return scan_in_windows(need, std::move(why), watch);
  }

  /// Sets the dictionaries of a result's columns of strings.
  static void name_dictionaries(const Need& need, std::vector<ResultColumn>& columns) {
    std::vector<const Expression*> outputs;
    for (const Expression& one : need.query.keys) outputs.push_back(&one);
    for (const AggregateCall& one : need.query.aggregates) outputs.push_back(one.value ? &*one.value : nullptr);
    for (const Expression& one : need.query.values) outputs.push_back(&one);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].type.id != Type::dictionary) continue;
      const Expression* one = outputs[i];
      while (one->operation() == Operation::cast) one = one->arguments().data();
      if (one->operation() == Operation::column) columns[i].dictionary = need.dictionaries[one->column_number()];
    }
  }

  [[nodiscard]] std::string explain_slice(const Query& query, const Watch& watch) {
    const Need need = need_of(query, *source_);
    std::vector<std::string> names;
    for (const std::uint32_t column : need.columns) {
      names.push_back(source_->column_of(column).name + (source_->is_validity(column) ? " (validity)" : ""));
    }
    std::string text = fmt::format("fetches {}: {} of {} columns, {} of {} fragments, {} at most\n",
                                   fmt::join(names, ", "), names.size(), source_->columns().size(),
                                   need.fragments.size(), source_->fragments().size(), format_bytes(need.bytes));
    if (need.pruned > 0) {
      text += fmt::format("skips {} fragments: their statistics show that no row passes the filter\n", need.pruned);
    }
    std::string why = too_much(need);
    TableView view = known_.view_of(need, nullptr);
    std::unique_ptr<Fetch> fetch;
    if (why.empty() && !need.fragments.empty()) {
      try {
        fetch = start(need);
        wait_for(*fetch, watch);
        view = known_.view_of(need, fetch.get());
        known_.learn(stream_, need, view);
      } catch (...) {
        rethrow_unless_out_of_device_memory();
        why = "the device has no memory for all columns together";
      }
    }
    if (!why.empty()) {
      text += fmt::format("streams them through the device in {} windows: {}\n", windows_of(need).size(), why);
    }
    return text + fetch::explain(view, need.query, levels_.device());
  }

  /// Why the columns cannot be fetched together; empty if they can.
  [[nodiscard]] std::string too_much(const Need& need) const {
    const std::size_t budget = levels_.statistics(Level::device).budget_bytes;
    if (need.bytes > budget) {
      return fmt::format("the columns take up to {}, but the device level's budget is {}", format_bytes(need.bytes),
                         format_bytes(budget));
    }
    if (need.rows > kScanRowsMax) return fmt::format("a scan takes at most {} rows", kScanRowsMax);
    return {};
  }

  [[nodiscard]] std::unique_ptr<Fetch> start(const Need& need) const {
    return std::make_unique<Fetch>(
        levels_, source_, FetchRequest{.columns = need.columns, .fragments = need.fragments, .options = options_});
  }

  TableResult scan_at_once(const Need& need, const Watch& watch) {
    TableResult result;
    const Time started = SteadyClock::now();
    std::unique_ptr<Fetch> fetch;
    if (!need.fragments.empty()) {  // for a Fetch, an empty list means all fragments
      fetch = start(need);
      wait_for(*fetch, watch);
      add(result.report, fetch->progress());
    }
    result.report.waited = SteadyClock::now() - started;
    result.report.pruned = need.pruned;
    TableView view = known_.view_of(need, fetch.get());
    known_.learn(stream_, need, view);
    ScanResult scanned = fetch::scan(stream_, view, need.query);
    result.columns = std::move(scanned.columns);
    result.report.scan = std::move(scanned.report);
    return result;
  }

  TableResult scan_in_windows(const Need& need, std::string why, const Watch& watch) {
    TableResult result;
    result.report.windows = 0;
    result.report.pruned = need.pruned;
    result.report.streamed = std::move(why);
    std::optional<PartialGroups> groups;
    if (gathers_groups(need.query)) groups.emplace(need.query);
    std::vector<std::vector<ResultColumn>> parts;
    Query query = groups ? groups->query() : need.query;
    WindowStream windows(levels_, source_, need.columns, options_, windows_of(need));
    while (const Fetch* const fetch = windows.next(watch)) {
      add(result.report, fetch->progress());
      TableView view = known_.view_of(need, fetch);
      known_.learn(stream_, need, view);
      ScanResult scanned = fetch::scan(stream_, view, query);
      ++result.report.windows;
      add(result.report.scan, std::move(scanned.report));
      if (groups) {
        groups->add(view, scanned.columns);
        continue;
      }
      const std::int64_t rows = scanned.columns.front().length;
      parts.push_back(std::move(scanned.columns));
      if (!query.order.empty()) continue;  // any later row may be among the first
      query.limit -= rows;
      if (query.limit <= 0) break;
    }
    result.report.waited = windows.waited();
    if (groups) {
      result.columns = groups->finish();
    } else if (query.order.empty()) {
      result.columns = concatenate(parts);
    } else {
      const Time started = SteadyClock::now();
      result.columns = merge_ordered(parts, known_.view_of(need, nullptr), query);
      result.report.scan.order_seconds += std::chrono::duration<double>(SteadyClock::now() - started).count();
    }
    return result;
  }

  Levels levels_;
  std::shared_ptr<Source> source_;
  FetchOptions options_;
  Stream stream_;
  TableView facts_;  ///< The types of all columns; names and fragments are empty.
  std::timed_mutex mutex_;
  KnownColumns known_;
};

Table::Table(Levels levels, std::shared_ptr<Source> source, FetchOptions options)
    : state_(std::make_unique<State>(std::move(levels), std::move(source), options)) {}
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

const Levels& Table::levels() const noexcept { return state_->levels(); }
const std::shared_ptr<Source>& Table::source() const noexcept { return state_->source(); }
const FetchOptions& Table::options() const noexcept { return state_->options(); }
TableResult Table::scan(const Query& query, const Watch& watch) { return state_->scan(query, watch); }
std::string Table::explain(const Query& query, const Watch& watch) { return state_->explain(query, watch); }
void Table::close() { state_->close(); }

std::vector<std::vector<std::uint32_t>> Table::windows(const std::vector<std::uint32_t>& columns) const {
  const Source& source = *state_->source();
  for (const std::uint32_t column : columns) {
    if (column >= source.columns().size()) {
      throw UsageError(fmt::format("there is no column {}: the table has {} columns", column, source.columns().size()));
    }
  }
  Need need{.columns = columns, .dictionaries = {}, .fragments = Fragments(source.fragments().size()), .query = {}};
  std::iota(need.fragments.begin(), need.fragments.end(), 0U);
  const auto windows = state_->windows_of(need);
  return {windows.begin(), windows.end()};
}

}  // namespace headrace::fetch
