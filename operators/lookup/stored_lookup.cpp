#include "operators/lookup/stored_lookup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "headrace/base/error.hpp"
#include "operators/lookup/lookup_checks.hpp"

namespace headrace::operators {

namespace {

constexpr const char* kCopying = "copying the table of lookup to a device";

LookupState sound_state(const LookupTable& table, const LookupOptions& options) {
  const LookupState state = sound_lookup(table.row_count, table.column_count, options);
  if (table.data == nullptr) throw UsageError("lookup: a table is needed");
  if (!options.counts.empty() && options.counts.size() != table.row_count) {
    throw UsageError(
        fmt::format("lookup: there are {} counts, but the table has {} rows", options.counts.size(), table.row_count));
  }
  return state;
}

/// The rank of each row by popularity; empty if rows are already in that order.
std::vector<std::uint32_t> places_by(std::span<const std::uint64_t> counts) {
  if (std::ranges::is_sorted(counts, std::ranges::greater{})) return {};
  std::vector<std::uint32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return counts[a] > counts[b]; });
  std::vector<std::uint32_t> places(counts.size());
  for (std::uint32_t place = 0; place < order.size(); ++place) places[order[place]] = place;
  return places;
}

}  // namespace

StoredLookup::StoredLookup(const LookupTable& table, const LookupOptions& options)
    : state_(sound_state(table, options)),
      rows_(room_for_rows("lookup", table.row_count, table.column_count, options.element,
                          table.row_count * whole_units(table.column_count))) {
  if (options.device_bytes && *options.device_bytes < rows_.bytes().size()) {
    device_bytes_ = options.device_bytes;
    places_ = places_by(options.counts);
  }
  store(table);
}

void StoredLookup::store(const LookupTable& table) {
  const HostTable from{table.data, table.element, table.row_count, table.column_count};
  const auto bad = store_table(from, rows_, [&](std::uint64_t row, std::uint32_t column) {
    return (places_.empty() ? row : places_[row]) * std::uint64_t{state_.units} * kUnit + column;
  });
  if (!bad) return;
  throw UsageError(fmt::format("lookup: element ({}, {}) of the table is {}, which is not finite as {}", bad->row,
                               bad->column, bad->value, to_string(rows_.type())));
}

serve::LoadedState StoredLookup::load(std::shared_ptr<const StoredLookup> self, Device device) const {
  struct Owners {
    std::shared_ptr<const StoredLookup> table;
    Placed rows;
    Placed places;
  };
  const bool whole = !device_bytes_ || device.properties().host_memory;
  auto owners = std::make_shared<Owners>(
      Owners{.table = std::move(self),
             .rows = whole ? place_on(device, rows_.bytes(), kCopying)
                           : place_within(device, rows_.bytes(), *device_bytes_, kCopying),
             .places = places_.empty() ? Placed{} : place_on(device, std::as_bytes(std::span(places_)), kCopying)});
  LookupState state = state_;
  state.rows = owners->rows.data;
  state.places = reinterpret_cast<const std::uint32_t*>(owners->places.data);
  return serve::make_state(state, owners);
}

}  // namespace headrace::operators
