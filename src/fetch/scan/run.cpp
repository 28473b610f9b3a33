#include "fetch/scan/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "fetch/scan/kernel.hpp"
#include "fetch/scan/order_word.hpp"
#include "fetch/scan/result.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr const char* kScanning = "scanning a table";
constexpr std::int64_t kRowsMax = std::int64_t{1} << 31;
/// Words of the faults, which precede the states in the results.
constexpr std::size_t kStatesAt = kFaults * sizeof(std::uint32_t) / sizeof(std::uint64_t);

/// Throws UsageError unless the columns of a fragment match the table's description.
std::int64_t check_fragment(const TableView& table, std::size_t number) {
  const std::vector<ColumnView>& fragment = table.fragments[number];
  if (fragment.size() != table.columns.size()) {
    throw UsageError(
        fmt::format("fragment {} has {} columns, but the table has {}", number, fragment.size(), table.columns.size()));
  }
  const std::int64_t rows = fragment.empty() ? 0 : fragment[0].length;
  for (std::size_t c = 0; c < fragment.size(); ++c) {
    const ColumnView& view = fragment[c];
    const ColumnFacts& facts = table.columns[c];
    if (view.type != facts.type) {
      throw UsageError(fmt::format("fragment {} has column '{}' of type {}, but the table declares {}", number,
                                   facts.name, to_string(view.type), to_string(facts.type)));
    }
    if (view.length != rows || rows < 0 || view.offset < 0) {
      throw UsageError(
          fmt::format("fragment {} has {} rows at offset {} in column '{}', but its first column has {} rows", number,
                      view.length, view.offset, facts.name, rows));
    }
    if (view.values == nullptr && rows > 0) {
      throw UsageError(fmt::format("fragment {} has no values buffer in column '{}'", number, facts.name));
    }
  }
  return rows;
}

}  // namespace

Run::Run(StreamRef stream, const TableView& table, const Compiled& compiled)
    : stream_(stream), compiled_(compiled), under_way_(stream) {
  std::vector<FragmentPlace> places;
  std::vector<ColumnPlace> columns;
  std::int64_t all_rows = 0;
  for (std::size_t f = 0; f < table.fragments.size(); ++f) {
    const std::int64_t rows = check_fragment(table, f);
    if (rows == 0) continue;
    all_rows += rows;
    if (all_rows > kRowsMax)
      throw UsageError(fmt::format("a scan takes at most {} rows, not {}", kRowsMax, table.rows()));
    places.push_back({.rows = static_cast<std::uint32_t>(rows), .first_tile = work_.tiles});
    work_.tiles += static_cast<std::uint32_t>((rows + kTileRows - 1) / kTileRows);
    for (const std::uint32_t column : compiled.columns) {
      ColumnView view = table.fragments[f][column];
      // Ignores the validity bitmap of a column without missing values.
      if (view.null_count == 0 || !table.columns[column].nullable) view.validity = nullptr;
      read_bytes_ += static_cast<std::uint64_t>(values_bytes(view.type, rows)) +
                     (view.validity == nullptr ? 0 : static_cast<std::uint64_t>((rows + 7) / 8));
      columns.push_back(place_of(view));
    }
  }
  places.push_back({.rows = 0, .first_tile = work_.tiles});
  upload_arguments(places, columns);
  ranks_.reserve(compiled.ranks.size());  // a push_back that throws must not free a buffer with a copy in flight
  for (std::size_t r = 0; r < compiled.ranks.size(); ++r) {
    ranks_.push_back(upload(compiled.ranks[r]->data(), compiled.ranks[r]->size() * sizeof(std::int32_t)));
    work_.ranks[r] = ranks_.back().as<const std::int32_t>();
  }
}

void Run::upload_arguments(std::span<const FragmentPlace> places, std::span<const ColumnPlace> columns) {
  constexpr std::size_t alignment = 256;
  const std::size_t places_at = align_up(sizeof(Program), alignment);
  const std::size_t columns_at = align_up(places_at + places.size_bytes(), alignment);
  arguments_.resize(columns_at + columns.size_bytes());
  std::memcpy(arguments_.data(), &compiled_.program, sizeof(Program));
  std::memcpy(arguments_.data() + places_at, places.data(), places.size_bytes());
  if (!columns.empty()) std::memcpy(arguments_.data() + columns_at, columns.data(), columns.size_bytes());
  on_device_ = upload(arguments_.data(), arguments_.size());
  work_.program = on_device_.as<const Program>();
  work_.column_count = static_cast<std::uint32_t>(compiled_.columns.size());
  work_.fragments = reinterpret_cast<const FragmentPlace*>(on_device_.data() + places_at);
  work_.columns = reinterpret_cast<const ColumnPlace*>(on_device_.data() + columns_at);
}

Buffer Run::upload(const void* from, std::size_t bytes) {
  Buffer buffer(stream_.device(), MemoryKind::pool, bytes);
  if (bytes > 0) {
    under_way_.begin();
    stream_.copy(buffer.data(), from, bytes).or_throw(kScanning);
  }
  return buffer;
}

Buffer Run::make(std::size_t bytes, unsigned char fill) {
  Buffer buffer(stream_.device(), MemoryKind::pool, bytes);
  if (bytes > 0) {
    under_way_.begin();
    stream_.fill(buffer.data(), fill, bytes).or_throw(kScanning);
  }
  return buffer;
}

template <class T>
std::vector<T> Run::download(const void* from, std::size_t count) const {
  std::vector<T> values(count);
  if (count > 0) stream_.copy(values.data(), from, count * sizeof(T)).or_throw(kScanning);
  stream_.wait().or_throw(kScanning);
  return values;
}

void Run::prepare_results(std::size_t state_bytes) {
  results_ = make(kStatesAt * sizeof(std::uint64_t) + state_bytes, 0);
  work_.faults = results_.as<std::uint32_t>();
  work_.states = results_.as<std::uint64_t>() + kStatesAt;
}

void Run::prepare_groups() {
  const Program& program = compiled_.program;
  const State& last = program.states[program.state_count - 1];
  const std::size_t words = last.block + state_words(last.op);
  const std::size_t group_bytes = program.groups * sizeof(std::uint64_t);
  prepare_results(words * group_bytes);
  for (std::uint32_t s = 0; s < program.state_count; ++s) {
    if (program.states[s].op != Op::least) continue;
    std::byte* const states = results_.data() + kStatesAt * sizeof(std::uint64_t);
    stream_.fill(states + program.states[s].block * group_bytes, 0xFF, group_bytes).or_throw(kScanning);
  }
  tables_.reserve(compiled_.tables);
  for (std::uint32_t t = 0; t < compiled_.tables; ++t) {
    tables_.push_back(make(compiled_.places * sizeof(std::uint64_t), kEmptyByte));
    work_.tables[t] = {.keys = tables_.back().as<std::uint64_t>(), .mask = compiled_.places - 1};
  }
}

void Run::prepare_values(std::int64_t rows, std::vector<std::int64_t> tile_first) {
  prepare_results(0);
  work_.limit = rows;
  tile_first_ = std::move(tile_first);
  tile_rows_ = upload(tile_first_.data(), tile_first_.size() * sizeof(std::int64_t));
  work_.tile_rows = tile_rows_.as<std::int64_t>();
  emitted_ = Emitted(stream_, compiled_.output_count, rows);
  work_.outputs = emitted_.on_device.as<const Output>();
}

bool Run::execute(std::uint32_t tiles, ScanReport& report) {
  ScanWork work = work_;
  work.tiles = tiles;
  const Event start(stream_.device(), EventTiming::on);
  const Event end(stream_.device(), EventTiming::on);
  under_way_.begin();
  stream_.record(start).or_throw(kScanning);
  if (tiles > work.first_tile) enqueue_scan(stream_, work).or_throw(kScanning);
  stream_.record(end).or_throw(kScanning);
  // Enqueues the download of the results as well, so that the host waits only once.
  left_ = download<std::uint64_t>(results_.data(), results_.bytes() / sizeof(std::uint64_t));
  under_way_.end();
  if (tiles > 0) {
    const Duration took = end.since(start).or_throw(kScanning);
    report.ended = SteadyClock::now();
    if (report.began == Time{}) report.began = report.ended - took;
    report.seconds += std::chrono::duration<double>(took).count();
  }
  return check_faults();
}

void Run::prepare_keys(std::span<const Order> order) {
  ranks_.reserve(ranks_.size() + order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ValuePlace place = compiled_.outputs[order[i].value];
    if (place.wide) {
      const bool nullable = compiled_.values[order[i].value].nullable;
      const auto halves = make_wide_order_keys(place.output, order[i].descending, nullable);
      keys_.insert(keys_.end(), halves.begin(), halves.end());
      host_keys_.insert(host_keys_.end(), halves.begin(), halves.end());
      continue;
    }
    const Ranks& places = compiled_.order_ranks[i];
    const std::size_t count = places == nullptr ? 0 : places->size();
    if (count > 0) ranks_.push_back(upload(places->data(), count * sizeof(std::int32_t)));
    const auto* const on_device = count == 0 ? nullptr : ranks_.back().as<const std::int32_t>();
    const Typed& type = compiled_.values[order[i].value];
    keys_.push_back(make_order_key(type, order[i], on_device, static_cast<std::int64_t>(count)));
    keys_.back().value = place.output;
    host_keys_.push_back(keys_.back());
    host_keys_.back().ranks = count == 0 ? nullptr : places->data();
  }
}

void Run::order(std::span<const Order> order, std::int64_t limit, ScanReport& report) {
  const Time started = SteadyClock::now();
  prepare_keys(order);
  emitted_ = ordered_rows(stream_, emitted_, keys_, limit);
  report.order_seconds += std::chrono::duration<double>(SteadyClock::now() - started).count();
}

void Run::prepare_first(std::span<const Order> order, std::int64_t limit, std::int64_t room) {
  prepare_results(sizeof(std::uint64_t));
  prepare_keys(order);
  // Equal rows stay in the table's order: their numbers are the last key.
  const auto numbers = static_cast<std::uint64_t>(work_.tiles) * kTileRows;
  keys_.push_back({.value = compiled_.output_count - 1,
                   .nullable = false,
                   .narrow = true,
                   .bits = static_cast<std::uint8_t>(std::bit_width(numbers))});
  keys_on_device_ = upload(keys_.data(), host_keys_.size() * sizeof(OrderKey));
  emitted_ = Emitted(stream_, compiled_.output_count, limit + room);
  beside_ = Emitted(stream_, compiled_.output_count, limit + room);
  work_.limit = limit + room;
  work_.order = keys_on_device_.as<const OrderKey>();
  work_.appended = work_.states;
  wanted_ = limit;
}

std::int64_t Run::append_tiles(std::uint32_t first, std::uint32_t end, ScanReport& report) {
  work_.first_tile = first;
  work_.outputs = emitted_.on_device.as<const Output>();
  under_way_.begin();
  stream_.copy(work_.appended, &kept_, sizeof(kept_)).or_throw(kScanning);
  static_cast<void>(execute(end, report));
  return static_cast<std::int64_t>(states().front());
}

void Run::keep_first(std::int64_t rows, ScanReport& report) {
  const Time started = SteadyClock::now();
  order_rows(stream_, emitted_, rows, keys_, beside_, wanted_);
  std::swap(emitted_, beside_);
  const std::int64_t kept = std::min(rows, wanted_);
  kept_ = static_cast<std::uint64_t>(kept);
  if (kept == wanted_) {
    work_.bound.there = true;
    for (std::size_t k = 0; k < host_keys_.size(); ++k) {
      const Output& from = emitted_.outputs[host_keys_[k].value];
      const bool valid = download<std::uint8_t>(from.valid + kept - 1, 1).front() != 0;
      const std::int64_t bits = download<std::int64_t>(from.values + kept - 1, 1).front();
      work_.bound.missing[k] = !valid;
      work_.bound.words[k] = word_of(host_keys_[k], bits, valid);
    }
  }
  report.order_seconds += std::chrono::duration<double>(SteadyClock::now() - started).count();
}

bool Run::happened(Fault what) const noexcept {
  std::array<std::uint32_t, kFaults> faults{};
  std::memcpy(faults.data(), left_.data(), sizeof(faults));
  return faults[static_cast<std::size_t>(what)] != 0;
}

bool Run::check_faults() const {
  if (is_too_wide() && compiled_.narrow_sums) return false;
  if (happened(Fault::overflow)) {
    throw UsageError("an integer or decimal computation in the query needs more than 64 bits; cast to double first");
  }
  if (happened(Fault::conversion)) {
    throw UsageError(
        "a cast in the query meets a value that its type cannot hold, or a key lies outside the range "
        "that the table states for its column");
  }
  if (happened(Fault::wide_decimal)) {
    throw UsageError(
        "the query computes with a decimal column that holds a value of more than 64 bits; such values can only be "
        "selected, counted, summed and ordered");
  }
  return !happened(Fault::table_full);
}

std::span<const std::uint64_t> Run::states() const noexcept { return std::span(left_).subspan(kStatesAt); }

std::vector<std::vector<std::uint64_t>> Run::tables() const {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Buffer& table : tables_) all.push_back(download<std::uint64_t>(table.data(), compiled_.places));
  return all;
}

std::vector<std::int64_t> Run::tile_rows() const {
  return download<std::int64_t>(tile_rows_.data(), tile_rows_.bytes() / sizeof(std::int64_t));
}

ResultColumn Run::output(std::size_t number) const {
  const auto count = static_cast<std::size_t>(wanted_ > 0 ? kept_ : static_cast<std::uint64_t>(emitted_.rows));
  const ValuePlace place = compiled_.outputs[number];
  const auto values = download<std::int64_t>(emitted_.outputs[place.output].values, count);
  const auto valid = download<std::uint8_t>(emitted_.outputs[place.output].valid, count);
  std::vector<std::int64_t> high;
  if (place.wide) high = download<std::int64_t>(emitted_.outputs[place.output + 1].values, count);
  return emitted_column(compiled_.values[number].type, values, high, valid);
}

}  // namespace headrace::fetch
