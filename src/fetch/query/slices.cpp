#include "fetch/query/slices.hpp"

#include <algorithm>

#include "fetch/query/compiler.hpp"
#include "fetch/query/lower.hpp"
#include "fetch/query/need.hpp"

namespace headrace::fetch {

namespace {

/// Outputs and instructions that a program has room for, or that a value needs.
struct Room {
  std::size_t outputs = 0;
  std::size_t instructions = 0;

  [[nodiscard]] bool holds(const Room& other) const noexcept {
    return other.outputs <= outputs && other.instructions <= instructions;
  }
  Room& operator+=(const Room& other) noexcept {
    outputs += other.outputs;
    instructions += other.instructions;
    return *this;
  }
};

std::size_t nodes_of(const Expression& expression) {
  std::size_t nodes = 1;
  for (const Expression& argument : expression.arguments()) nodes += nodes_of(argument);
  return nodes;
}

/// Room that a value needs: exact for a column, an estimate for other expressions.
Room room_of(const TableView& table, const Expression& value) {
  const std::size_t outputs = is_wide_column(table, value) ? 2 : 1;
  if (value.operation() == Operation::column) return {.outputs = outputs, .instructions = 2 * outputs};
  return {.outputs = 1, .instructions = 2 * nodes_of(value) + 1};
}

/// A slice with the values [first, last) of a query, and the values that it is ordered by.
Slice slice_of(const Query& query, std::size_t first, std::size_t last) {
  Slice slice{.query = {.filter = query.filter, .order = query.order, .limit = query.limit}, .values = last - first};
  auto& values = slice.query.values;
  values.assign(query.values.begin() + static_cast<std::ptrdiff_t>(first),
                query.values.begin() + static_cast<std::ptrdiff_t>(last));
  for (Order& by : slice.query.order) {
    if (by.value >= first && by.value < last) {
      by.value -= static_cast<std::uint32_t>(first);
      continue;
    }
    values.push_back(query.values.at(by.value));
    by.value = static_cast<std::uint32_t>(values.size() - 1);
  }
  return slice;
}

}  // namespace

std::vector<Slice> slices_of(const Query& query, const TableView& table) {
  Room fixed{.outputs = 0, .instructions = query.filter ? 2 * nodes_of(*query.filter) + 2 : 1};
  Room all = fixed;
  for (const Expression& value : query.values) all += room_of(table, value);
  constexpr Room kProgram{.outputs = kOutputsMax, .instructions = kInstructionsMax};
  // The compiler refuses an order by a value that does not exist.
  const bool known = std::ranges::all_of(query.order, [&](const Order& by) { return by.value < query.values.size(); });
  if (gathers_groups(query) || kProgram.holds(all) || !known) return {{query, query.values.size()}};
  // Each slice may need room for the values of the order.
  for (const Order& by : query.order) fixed += room_of(table, query.values[by.value]);
  std::vector<Slice> slices;
  std::size_t first = 0;
  while (first < query.values.size()) {
    Room taken = fixed;
    std::size_t last = first;
    do {
      taken += room_of(table, query.values[last++]);
    } while (last < query.values.size() && [&] {
      Room more = taken;
      return kProgram.holds(more += room_of(table, query.values[last]));
    }());
    slices.push_back(slice_of(query, first, last));
    first = last;
  }
  return slices;
}

}  // namespace headrace::fetch
