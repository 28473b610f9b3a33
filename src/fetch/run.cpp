#include "fetch/run.hpp"

#include <fmt/format.h>

#include <cstring>

#include "fetch/kernel.hpp"
#include "fetch/result.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr const char* kDoing = "scanning a table";
constexpr std::int64_t kRowsMax = std::int64_t{1} << 31;

/// Throws UsageError unless the columns of a fragment are what the table says.
std::int64_t check_fragment(const TableView& table, std::size_t number) {
  const std::vector<ColumnView>& fragment = table.fragments[number];
  if (fragment.size() != table.columns.size()) {
    throw UsageError(
        fmt::format("fragment {} has {} columns, and the table {}", number, fragment.size(), table.columns.size()));
  }
  const std::int64_t rows = fragment.empty() ? 0 : fragment[0].length;
  for (std::size_t c = 0; c < fragment.size(); ++c) {
    const ColumnView& view = fragment[c];
    const ColumnFacts& facts = table.columns[c];
    if (view.type != facts.type) {
      throw UsageError(fmt::format("fragment {} has column '{}' as {}, and the table as {}", number, facts.name,
                                   to_string(view.type), to_string(facts.type)));
    }
    if (view.length != rows || rows < 0 || view.offset < 0) {
      throw UsageError(fmt::format("fragment {} has {} rows from {} on in column '{}', and {} in the first", number,
                                   view.length, view.offset, facts.name, rows));
    }
    if (view.values == nullptr && rows > 0) {
      throw UsageError(fmt::format("fragment {} has no values in column '{}'", number, facts.name));
    }
  }
  return rows;
}

}  // namespace

Run::Run(StreamRef stream, const TableView& table, const Compiled& compiled) : stream_(stream), compiled_(compiled) {
  std::vector<FragmentPlace> places;
  std::vector<ColumnView> views;
  std::int64_t all_rows = 0;
  for (std::size_t f = 0; f < table.fragments.size(); ++f) {
    const std::int64_t rows = check_fragment(table, f);
    if (rows == 0) continue;
    places.push_back({.rows = rows, .first_tile = work_.tiles});
    work_.tiles += (rows + kTileRows - 1) / kTileRows;
    all_rows += rows;
    for (const std::uint32_t column : compiled.columns) {
      ColumnView view = table.fragments[f][column];
      // A validity bitmap of a column that misses nothing says nothing.
      if (view.null_count == 0 || !table.columns[column].nullable) view.validity = nullptr;
      read_bytes_ += static_cast<std::uint64_t>(values_bytes(view.type, rows)) +
                     (view.validity == nullptr ? 0 : static_cast<std::uint64_t>((rows + 7) / 8));
      views.push_back(view);
    }
  }
  if (all_rows > kRowsMax) throw UsageError(fmt::format("a scan takes {} rows at most, not {}", kRowsMax, all_rows));
  places.push_back({.rows = 0, .first_tile = work_.tiles});
  program_ = upload(&compiled.program, sizeof(Program));
  fragments_ = upload(places.data(), places.size() * sizeof(FragmentPlace));
  columns_ = upload(views.data(), views.size() * sizeof(ColumnView));
  for (std::size_t r = 0; r < compiled.ranks.size(); ++r) {
    ranks_.push_back(upload(compiled.ranks[r]->data(), compiled.ranks[r]->size() * sizeof(std::int32_t)));
    work_.ranks[r] = ranks_.back().as<const std::int32_t>();
  }
  faults_ = make(kFaults * sizeof(std::uint32_t), 0);
  work_.program = program_.as<const Program>();
  work_.fragments = fragments_.as<const FragmentPlace>();
  work_.columns = columns_.as<const ColumnView>();
  work_.faults = faults_.as<std::uint32_t>();
  stream_.wait().or_throw(kDoing);  // what is uploaded lies in vectors of this function
}

Buffer Run::upload(const void* from, std::size_t bytes) const {
  Buffer buffer(stream_.device(), MemoryKind::pool, bytes);
  if (bytes > 0) stream_.copy(buffer.data(), from, bytes).or_throw(kDoing);
  return buffer;
}

Buffer Run::make(std::size_t bytes, unsigned char fill) const {
  Buffer buffer(stream_.device(), MemoryKind::pool, bytes);
  if (bytes > 0) stream_.fill(buffer.data(), fill, bytes).or_throw(kDoing);
  return buffer;
}

template <class T>
std::vector<T> Run::download(const void* from, std::size_t count) const {
  std::vector<T> values(count);
  if (count > 0) stream_.copy(values.data(), from, count * sizeof(T)).or_throw(kDoing);
  stream_.wait().or_throw(kDoing);
  return values;
}

void Run::prepare_groups() {
  const Program& program = compiled_.program;
  const State& last = program.states[program.state_count - 1];
  const std::size_t words = last.block + state_words(last.op);
  const std::size_t group_bytes = program.groups * sizeof(std::uint64_t);
  states_ = make(words * group_bytes, 0);
  work_.states = states_.as<std::uint64_t>();
  for (std::uint32_t s = 0; s < program.state_count; ++s) {
    if (program.states[s].op != Op::least) continue;
    stream_.fill(states_.data() + program.states[s].block * group_bytes, 0xFF, group_bytes).or_throw(kDoing);
  }
  for (std::uint32_t t = 0; t < compiled_.tables; ++t) {
    tables_.push_back(make(compiled_.places * sizeof(std::uint64_t), kEmptyByte));
    work_.tables[t] = {.keys = tables_.back().as<std::uint64_t>(), .mask = compiled_.places - 1};
  }
}

void Run::prepare_values(std::int64_t rows, const std::vector<std::int64_t>& tile_first) {
  work_.limit = rows;
  tile_rows_ = upload(tile_first.data(), tile_first.size() * sizeof(std::int64_t));
  work_.tile_rows = tile_rows_.as<std::int64_t>();
  emitted_ = Emitted(stream_, compiled_.values.size(), rows);
  work_.outputs = emitted_.on_device.as<const Output>();
}

bool Run::execute(std::int64_t tiles, ScanReport& report) {
  ScanWork work = work_;
  work.tiles = tiles;
  if (tiles > 0) {
    const Event start(stream_.device(), EventTiming::on);
    const Event end(stream_.device(), EventTiming::on);
    stream_.record(start).or_throw(kDoing);
    enqueue_scan(stream_, work).or_throw(kDoing);
    stream_.record(end).or_throw(kDoing);
    end.wait().or_throw(kDoing);
    const Duration took = end.since(start).or_throw(kDoing);
    report.ended = SteadyClock::now();
    if (report.began == Time{}) report.began = report.ended - took;
    report.seconds += std::chrono::duration<double>(took).count();
  }
  return check_faults();
}

void Run::order(std::span<const Order> order, std::int64_t limit, ScanReport& report) {
  const Time started = SteadyClock::now();
  std::vector<Buffer> ranks;
  std::vector<OrderKey> keys;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Ranks& places = compiled_.order_ranks[i];
    const std::size_t count = places == nullptr ? 0 : places->size();
    if (count > 0) ranks.push_back(upload(places->data(), count * sizeof(std::int32_t)));
    keys.push_back(make_order_key(compiled_.values[order[i].value], order[i],
                                  count == 0 ? nullptr : ranks.back().as<const std::int32_t>(),
                                  static_cast<std::int64_t>(count)));
  }
  emitted_ = ordered_rows(stream_, emitted_, keys, limit);
  report.order_seconds = std::chrono::duration<double>(SteadyClock::now() - started).count();
}

bool Run::check_faults() const {
  const auto faults = download<std::uint32_t>(work_.faults, kFaults);
  const auto happened = [&](Fault what) { return faults[static_cast<std::size_t>(what)] != 0; };
  if (happened(Fault::overflow)) {
    throw UsageError("an integer or decimal computation of the query gives more than 64 bits: cast to double first");
  }
  if (happened(Fault::conversion)) {
    throw UsageError(
        "a cast of the query meets a value that its type does not hold, or a key lies outside the range "
        "that the table claims for its column");
  }
  if (happened(Fault::wide_decimal)) {
    throw UsageError("a decimal column of the query holds a value of more than 64 bits, which scans do not take");
  }
  return !happened(Fault::table_full);
}

std::vector<std::uint64_t> Run::states() const {
  return download<std::uint64_t>(states_.data(), states_.bytes() / sizeof(std::uint64_t));
}

std::vector<std::vector<std::uint64_t>> Run::tables() const {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Buffer& table : tables_) all.push_back(download<std::uint64_t>(table.data(), compiled_.places));
  return all;
}

std::vector<std::int64_t> Run::tile_rows() const {
  return download<std::int64_t>(tile_rows_.data(), tile_rows_.bytes() / sizeof(std::int64_t));
}

ResultColumn Run::output(std::size_t number) const {
  const auto count = static_cast<std::size_t>(emitted_.rows);
  const auto values = download<std::int64_t>(emitted_.outputs[number].values, count);
  const auto valid = download<std::uint8_t>(emitted_.outputs[number].valid, count);
  return emitted_column(compiled_.values[number].type, values, valid);
}

}  // namespace headrace::fetch
