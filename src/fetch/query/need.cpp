#include "fetch/query/need.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fetch/host_chunk.hpp"
#include "fetch/query/prune.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

template <class Body>
void each_expression(const Query& query, const Body& body) {
  if (query.filter) body(*query.filter);
  for (const Expression& one : query.keys) body(one);
  for (const AggregateCall& one : query.aggregates) {
    if (one.value) body(*one.value);
  }
  for (const Expression& one : query.values) body(one);
}

/// The columns that a query names, in the table's order. A query that names none counts the rows of the narrowest
/// column.
std::vector<std::uint32_t> columns_of(const Query& query, const std::vector<Column>& columns) {
  std::vector<std::uint32_t> named;
  each_expression(query, [&](const Expression& one) { one.columns(named); });
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  if (!named.empty() && named.back() >= columns.size()) {
    throw UsageError(fmt::format("there is no column {}: the table has {} columns", named.back(), columns.size()));
  }
  if (named.empty()) {
    const auto narrowest =
        std::ranges::min_element(columns, {}, [](const Column& one) { return value_bits(level_type(one.type)); });
    named.push_back(static_cast<std::uint32_t>(narrowest - columns.begin()));
  }
  return named;
}

/// True for a plain column.
bool is_column(const Expression& one) { return one.operation() == Operation::column; }

/// Adds the columns whose values an expression uses. A column that is only tested for missing values does not count.
void valued_columns(const Expression& one, std::vector<std::uint32_t>& to) {
  if (is_column(one)) to.push_back(one.column_number());
  if (one.operation() == Operation::is_null && is_column(one.arguments()[0])) return;
  for (const Expression& argument : one.arguments()) valued_columns(argument, to);
}

std::vector<std::uint32_t> valued_columns(const Query& query) {
  std::vector<std::uint32_t> valued;
  if (query.filter) valued_columns(*query.filter, valued);
  for (const Expression& one : query.keys) valued_columns(one, valued);
  for (const Expression& one : query.values) valued_columns(one, valued);
  for (const AggregateCall& one : query.aggregates) {
    if (!one.value || (one.function == Aggregate::count && is_column(*one.value))) continue;
    valued_columns(*one.value, valued);
  }
  return valued;
}

/// Replaces columns of strings that are only counted or tested for missing values by their validity.
void take_validity(const Query& query, const Source& source, std::vector<std::uint32_t>& columns) {
  const auto valued = valued_columns(query);
  for (std::uint32_t& column : columns) {
    if (source.type_of(column).id != Type::dictionary || std::ranges::find(valued, column) != valued.end()) continue;
    column = source.validity_of(column);
  }
}

Query renumbered(Query query, const std::vector<std::uint32_t>& columns, std::size_t all) {
  std::vector<std::uint32_t> numbers(all);
  for (std::size_t i = 0; i < columns.size(); ++i) numbers[columns[i]] = static_cast<std::uint32_t>(i);
  if (query.filter) query.filter = query.filter->renumbered(numbers);
  for (Expression& one : query.keys) one = one.renumbered(numbers);
  for (AggregateCall& one : query.aggregates) {
    if (one.value) one.value = one.value->renumbered(numbers);
  }
  for (Expression& one : query.values) one = one.renumbered(numbers);
  return query;
}

/// The fragments that a query needs. A query that just takes the first rows, unordered, needs only the first fragments.
Fragments fragments_of(const Query& query, const std::vector<Fragment>& fragments) {
  std::size_t count = fragments.size();
  if (!query.filter && !gathers_groups(query) && query.order.empty()) {
    std::int64_t rows = 0;
    for (count = 0; count < fragments.size() && (count == 0 || rows < query.limit); ++count) {
      rows += fragments[count].rows;
    }
  }
  Fragments needed(count);
  std::iota(needed.begin(), needed.end(), 0U);
  return needed;
}

}  // namespace

Need need_of(const Query& query, const Source& source) {
  Need need{.columns = columns_of(query, source.columns()),
            .dictionaries = {},
            .fragments = fragments_of(query, source.fragments()),
            .query = {}};
  if (query.filter) {
    need.pruned =
        std::erase_if(need.fragments, [&](std::uint32_t one) { return !may_pass(*query.filter, source, one); });
  }
  need.query = renumbered(query, need.columns, source.columns().size());
  take_validity(query, source, need.columns);
  for (const std::uint32_t column : need.columns) {
    need.dictionaries.push_back(source.is_validity(column) ? nullptr : source.dictionary(column));
  }
  for (const std::uint32_t fragment : need.fragments) {
    need.bytes += fragment_bytes(source, need.columns, fragment);
    need.rows += source.fragments()[fragment].rows;
  }
  return need;
}

}  // namespace headrace::fetch
