#include "headrace/fetch/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "fetch/host_chunk.hpp"
#include "fetch/levels_state.hpp"
#include "fetch/query/look.hpp"
#include "fetch/query/need.hpp"
#include "fetch/scan/merge.hpp"
#include "fetch/windows.hpp"
#include "headrace/base/bytes.hpp"
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
        known_(2 * source_->columns().size()) {}

  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept { return source_; }
  [[nodiscard]] const FetchOptions& options() const noexcept { return options_; }

  [[nodiscard]] TableResult scan(const Query& query, const Watch& watch) {
    const auto lock = take_turn(watch);
    const Need need = need_of(query, *source_);
    QueryGate& gate = levels_.state()->gate;
    {
      const QueryGate::Pass beside = gate.enter(poll(watch));
      try {
        return scan_here(need, beside, watch);
      } catch (...) {
        rethrow_unless_out_of_memory();
        if (beside.has_been_alone()) throw;
      }
    }
    // Others held memory. What does not fit without them never does.
    const QueryGate::Pass alone = gate.enter_alone(poll(watch));
    return scan_here(need, alone, watch);
  }

  [[nodiscard]] std::string explain(const Query& query, const Watch& watch) {
    const auto lock = take_turn(watch);
    const Need need = need_of(query, *source_);
    std::vector<std::string> names;
    for (const std::uint32_t column : need.columns) {
      names.push_back(source_->column_of(column).name + (source_->is_validity(column) ? " (validity)" : ""));
    }
    std::string text = fmt::format("fetches {}: {} of {} columns, {} of {} fragments, {} at most\n",
                                   fmt::join(names, ", "), names.size(), source_->columns().size(),
                                   need.fragments.size(), source_->fragments().size(), format_bytes(need.bytes));
    if (need.pruned > 0) {
      text +=
          fmt::format("leaves out {} fragments, of which statistics say that no row passes the filter\n", need.pruned);
    }
    std::string why = too_much(need);
    TableView view = view_of(need, nullptr);
    std::unique_ptr<Fetch> fetch;
    if (why.empty() && !need.fragments.empty()) {
      try {
        fetch = start(need);
        wait_for(*fetch, watch);
        view = view_of(need, fetch.get());
        learn(need, view);
      } catch (...) {
        rethrow_unless_out_of_device_memory();
        why = "the device has no memory for all of its columns together";
      }
    }
    if (!why.empty()) {
      text += fmt::format("streams them through the device in {} windows: {}\n", windows_of(need).size(), why);
    }
    return text + fetch::explain(view, need.query, levels_.device());
  }

  [[nodiscard]] std::deque<Fragments> windows_of(const Need& need) const {
    // Two fit with room to spare, since memory comes in slabs.
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

  /// Queries of one table take turns.
  [[nodiscard]] std::unique_lock<std::timed_mutex> take_turn(const Watch& watch) {
    constexpr auto kLook = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(kLook)) {
      if (watch) watch({});
    }
    if (source_->closed()) throw UsageError("the table has been closed");
    return lock;
  }

  /// Runs a query: at once where its columns fit, else in windows. Beside others it gives up where they do not fit all
  /// the same, since that may be for memory that the others hold.
  [[nodiscard]] TableResult scan_here(const Need& need, const QueryGate::Pass& pass, const Watch& watch) {
    TableResult result;
    std::string why = too_much(need);
    bool done = false;
    if (why.empty()) {
      try {
        result = scan_at_once(need, watch);
        done = true;
      } catch (...) {
        rethrow_unless_out_of_device_memory();
        if (!pass.has_been_alone()) throw;
        why = "the device had no memory for all of its columns together";
      }
    }
    if (!done) result = scan_in_windows(need, std::move(why), watch);
    name_dictionaries(need, result.columns);
    return result;
  }

  /// Says of columns of strings what their indices stand for.
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

  /// What is known of a column's values once all of them have been looked at.
  struct Known {
    bool nullable = true;
    std::optional<ValueRange> range;
  };

  /// Why the columns are not fetched together; empty where they are.
  [[nodiscard]] std::string too_much(const Need& need) const {
    const std::size_t budget = levels_.statistics(Level::device).budget_bytes;
    if (need.bytes > budget) {
      return fmt::format("the columns take up to {}, and the device level's budget is {}", format_bytes(need.bytes),
                         format_bytes(budget));
    }
    if (need.rows > kScanRowsMax) return fmt::format("a scan takes {} rows at most", kScanRowsMax);
    return {};
  }

  [[nodiscard]] std::unique_ptr<Fetch> start(const Need& need) const {
    return std::make_unique<Fetch>(
        levels_, source_, FetchRequest{.columns = need.columns, .fragments = need.fragments, .options = options_});
  }

  /// The columns that a query needs, of the fragments that have been fetched; of none where `fetch` is null.
  [[nodiscard]] TableView view_of(const Need& need, const Fetch* fetch) const {
    TableView view;
    for (std::size_t c = 0; c < need.columns.size(); ++c) {
      const std::uint32_t number = need.columns[c];
      const Column& column = source_->column_of(number);
      const DataType type = level_type(source_->type_of(number));
      ColumnFacts facts{.name = column.name, .type = type, .nullable = column.nullable, .range = {}};
      if (const auto& known = known_[number]) {
        facts.nullable = known->nullable;
        facts.range = known->range;
      }
      facts.dictionary = need.dictionaries[c].get();
      view.columns.push_back(std::move(facts));
    }
    for (std::size_t f = 0; fetch != nullptr && f < fetch->request().fragments.size(); ++f) {
      auto& fragment = view.fragments.emplace_back();
      fragment.reserve(need.columns.size());
      for (std::size_t c = 0; c < need.columns.size(); ++c) fragment.push_back(fetch->view(c, f));
    }
    return view;
  }

  /// Looks at the columns of which nothing is known. Those of strings are learnt each time: dictionaries grow.
  void learn(const Need& need, TableView& view) {
    std::vector<std::uint32_t> unknown;
    for (std::uint32_t c = 0; c < need.columns.size(); ++c) {
      if (view.columns[c].dictionary != nullptr) {
        learn_indices(view, c);
      } else if (!known_[need.columns[c]]) {
        unknown.push_back(c);
      }
    }
    if (!unknown.empty()) look_at(unknown, view);
    if (need.fragments.size() == view.fragments.size()) keep(need, view);
  }

  void look_at(const std::vector<std::uint32_t>& unknown, TableView& view) {
    TableView part;
    for (const std::uint32_t c : unknown) part.columns.push_back(view.columns[c]);
    for (const auto& fragment : view.fragments) {
      auto& of_part = part.fragments.emplace_back();
      for (const std::uint32_t c : unknown) of_part.push_back(fragment[c]);
    }
    look(stream_, part);
    for (std::size_t i = 0; i < unknown.size(); ++i) view.columns[unknown[i]] = part.columns[i];
  }

  /// What holds for every fragment of the table is known from now on.
  void keep(const Need& need, const TableView& view) {
    if (need.fragments.size() != source_->fragments().size()) return;
    for (std::size_t c = 0; c < need.columns.size(); ++c) {
      known_[need.columns[c]] = Known{.nullable = view.columns[c].nullable, .range = view.columns[c].range};
    }
  }

  TableResult scan_at_once(const Need& need, const Watch& watch) {
    TableResult result;
    const Time started = SteadyClock::now();
    std::unique_ptr<Fetch> fetch;
    if (!need.fragments.empty()) {  // to a Fetch, none are all
      fetch = start(need);
      wait_for(*fetch, watch);
      add(result.report, fetch->progress());
    }
    result.report.waited = SteadyClock::now() - started;
    result.report.pruned = need.pruned;
    TableView view = view_of(need, fetch.get());
    learn(need, view);
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
      TableView view = view_of(need, fetch);
      learn(need, view);
      ScanResult scanned = fetch::scan(stream_, view, query);
      ++result.report.windows;
      add(result.report.scan, std::move(scanned.report));
      if (groups) {
        groups->add(view, scanned.columns);
        continue;
      }
      const std::int64_t rows = scanned.columns.front().length;
      parts.push_back(std::move(scanned.columns));
      if (!query.order.empty()) continue;  // any row may be among the first
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
      result.columns = merge_ordered(parts, view_of(need, nullptr), query);
      result.report.scan.order_seconds += std::chrono::duration<double>(SteadyClock::now() - started).count();
    }
    return result;
  }

  Levels levels_;
  std::shared_ptr<Source> source_;
  FetchOptions options_;
  Stream stream_;
  std::timed_mutex mutex_;
  std::vector<std::optional<Known>> known_;  ///< By column of the source, then by validity_of() those.
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
      throw UsageError(fmt::format("there is no column {} of {}", column, source.columns().size()));
    }
  }
  Need need{.columns = columns, .dictionaries = {}, .fragments = Fragments(source.fragments().size()), .query = {}};
  std::iota(need.fragments.begin(), need.fragments.end(), 0U);
  const auto windows = state_->windows_of(need);
  return {windows.begin(), windows.end()};
}

}  // namespace headrace::fetch
