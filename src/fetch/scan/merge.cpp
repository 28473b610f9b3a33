#include "fetch/scan/merge.hpp"

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <utility>

#include "fetch/program/rows.hpp"
#include "fetch/query/lower.hpp"
#include "fetch/query/typing.hpp"
#include "fetch/scan/order_word.hpp"
#include "fetch/scan/result.hpp"

namespace headrace::fetch {

namespace {

/// The next row of a part, compared by the words of its keys in the order.
struct Head {
  std::vector<std::pair<bool, std::uint64_t>> words;  ///< For each key: whether the value is missing, then its word.
  std::size_t part = 0;
  std::int64_t row = 0;

  [[nodiscard]] auto operator<=>(const Head&) const = default;
};

}  // namespace

PartialGroups::PartialGroups(const Query& query) : keys_(query.keys.size()), partial_(query) {
  partial_.aggregates.clear();
  const auto gather = [&](Aggregate function, const AggregateCall& call, Role role) {
    partial_.aggregates.push_back({.function = function, .value = call.value});
    roles_.push_back(role);
  };
  for (const AggregateCall& call : query.aggregates) {
    places_.push_back({.function = call.function, .column = roles_.size()});
    switch (call.function) {
      case Aggregate::count_rows:
      case Aggregate::count: gather(call.function, call, Role::count); break;
      case Aggregate::sum: gather(call.function, call, Role::sum); break;
      case Aggregate::min: gather(call.function, call, Role::least); break;
      case Aggregate::max: gather(call.function, call, Role::greatest); break;
      case Aggregate::average:
        gather(Aggregate::sum, call, Role::sum);
        gather(Aggregate::count, call, Role::count);
        break;
    }
  }
}

std::size_t PartialGroups::group_of(const std::vector<ResultColumn>& part, std::int64_t row) {
  std::string name;
  for (std::size_t k = 0; k < keys_; ++k) {
    const bool valid = has_value(part[k], row);
    const std::int64_t bits = valid ? bits_at(part[k], row) : 0;
    name.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    name.push_back(valid ? 1 : 0);
  }
  const auto [place, added] = groups_.try_emplace(std::move(name), groups_.size());
  if (!added) return place->second;
  for (std::size_t k = 0; k < keys_; ++k) {
    const bool valid = has_value(part[k], row);
    cells_.push_back({.value = valid ? bits_at(part[k], row) : 0, .valid = valid});
  }
  cells_.resize(cells_.size() + roles_.size());
  return place->second;
}

void PartialGroups::merge(Cell& into, const ResultColumn& column, std::int64_t row, Role role,
                          const DictionaryOrder* order) const {
  if (!has_value(column, row)) return;
  const bool first = !into.valid;
  into.valid = true;
  const Kind kind = kind_of(column.type);
  if (role == Role::sum && kind == Kind::real) {
    const double sum =
        as_double(bits_at(column, row)) + (first ? 0.0 : as_double(static_cast<std::int64_t>(into.value)));
    into.value = as_bits(sum);
    return;
  }
  if (role == Role::sum || role == Role::count) {
    __int128 sum = 0;
    const bool over = __builtin_add_overflow(into.value, value_at(column, row), &sum);
    check_sum(over ? std::numeric_limits<__int128>::max() : sum);
    into.value = sum;
    return;
  }
  const std::int64_t bits = bits_at(column, row);
  const auto rank = [&](std::int64_t value) {
    return ordered(order == nullptr ? value : order->ranks[static_cast<std::size_t>(value)], kind);
  };
  const auto held = static_cast<std::int64_t>(into.value);
  if (first || (role == Role::least ? rank(bits) < rank(held) : rank(bits) > rank(held))) into.value = bits;
}

void PartialGroups::add(const TableView& table, const std::vector<ResultColumn>& part) {
  if (types_.empty()) {
    for (const ResultColumn& column : part) types_.push_back(column.type);
  }
  std::vector<std::shared_ptr<const DictionaryOrder>> orders;
  for (std::size_t c = 0; c < roles_.size(); ++c) {
    const bool extreme = roles_[c] == Role::least || roles_[c] == Role::greatest;
    orders.push_back(extreme ? order_of(table, *partial_.aggregates[c].value) : nullptr);
  }
  const std::size_t width = keys_ + roles_.size();
  const std::int64_t rows = part.empty() ? 0 : part[0].length;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t group = group_of(part, row);
    for (std::size_t c = 0; c < roles_.size(); ++c) {
      merge(cells_[group * width + keys_ + c], part[keys_ + c], row, roles_[c], orders[c].get());
    }
  }
}

std::vector<ResultColumn> PartialGroups::finish() const {
  const std::size_t width = keys_ + roles_.size();
  const auto count = static_cast<std::int64_t>(groups_.size());
  std::vector<ResultColumn> columns;
  const auto build = [&](const DataType& type, const auto& append) {
    ColumnBuilder builder(type, count);
    for (std::size_t group = 0; group < groups_.size(); ++group) append(builder, &cells_[group * width]);
    columns.push_back(builder.finish());
  };
  const auto cell = [&](std::size_t at) {
    return [at](ColumnBuilder& to, const Cell* group) { to.append_wide(group[at].value, group[at].valid); };
  };
  for (std::size_t k = 0; k < keys_; ++k) build(types_[k], cell(k));
  for (const Place& place : places_) {
    const std::size_t at = keys_ + place.column;
    if (place.function != Aggregate::average) {
      build(types_[at], cell(at));
      continue;
    }
    const DataType& sum = types_[at];
    build({.id = Type::float64}, [&](ColumnBuilder& to, const Cell* group) {
      const auto values = static_cast<std::int64_t>(group[at + 1].value);
      double average = 0;
      if (values > 0) {
        average = sum.id == Type::float64
                      ? as_double(static_cast<std::int64_t>(group[at].value)) / static_cast<double>(values)
                      : average_of(group[at].value, sum.scale, values);
      }
      to.append(as_bits(average), values > 0);
    });
  }
  return columns;
}

std::vector<ResultColumn> concatenate(const std::vector<std::vector<ResultColumn>>& parts) {
  std::vector<ResultColumn> columns;
  for (std::size_t c = 0; c < parts.front().size(); ++c) {
    std::int64_t length = 0;
    for (const auto& part : parts) length += part[c].length;
    ColumnBuilder builder(parts.front()[c].type, length);
    for (const auto& part : parts) {
      for (std::int64_t row = 0; row < part[c].length; ++row) {
        builder.append_wide(value_at(part[c], row), has_value(part[c], row));
      }
    }
    columns.push_back(builder.finish());
  }
  return columns;
}

std::vector<ResultColumn> merge_ordered(const std::vector<std::vector<ResultColumn>>& parts, const TableView& table,
                                        const Query& query) {
  std::vector<Ranks> ranks;
  std::vector<OrderKey> keys;
  for (const Order& by : query.order) {
    const Ranks& places = ranks.emplace_back(ranks_of(table, query.values[by.value]));
    keys.push_back(make_order_key({.type = parts.front()[by.value].type}, by,
                                  places == nullptr ? nullptr : places->data(),
                                  places == nullptr ? 0 : static_cast<std::int64_t>(places->size())));
  }
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::int64_t rows = 0;
  const auto push = [&](Head head) {
    const std::vector<ResultColumn>& part = parts[head.part];
    if (head.row == part.front().length) return;
    head.words.clear();
    for (const OrderKey& key : keys) {
      const bool valid = has_value(part[key.value], head.row);
      const __int128 value = value_at(part[key.value], head.row);
      const auto low = static_cast<std::int64_t>(value);
      if (part[key.value].type.id == Type::decimal128) {
        for (const OrderKey& half : make_wide_order_keys(0, key.descending, true)) {
          const auto bits = half.value == 0 ? low : static_cast<std::int64_t>(value >> 64);
          head.words.emplace_back(!valid, word_of(half, bits, valid));
        }
      } else {
        head.words.emplace_back(!valid, word_of(key, low, valid));
      }
    }
    heads.push(std::move(head));
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    rows += parts[part].front().length;
    push({.words = {}, .part = part, .row = 0});
  }
  rows = std::min(rows, query.limit);
  std::vector<ColumnBuilder> builders;
  for (const ResultColumn& column : parts.front()) builders.emplace_back(column.type, rows);
  for (std::int64_t taken = 0; taken < rows; ++taken) {
    Head head = heads.top();
    heads.pop();
    const std::vector<ResultColumn>& part = parts[head.part];
    for (std::size_t c = 0; c < builders.size(); ++c) {
      builders[c].append_wide(value_at(part[c], head.row), has_value(part[c], head.row));
    }
    ++head.row;
    push(std::move(head));
  }
  std::vector<ResultColumn> columns;
  for (ColumnBuilder& builder : builders) columns.push_back(builder.finish());
  return columns;
}

}  // namespace headrace::fetch
