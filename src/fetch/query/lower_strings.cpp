#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fetch/query/lower.hpp"
#include "fetch/query/typing.hpp"
#include "headrace/base/error.hpp"

/// Comparisons of strings. A column holds indices into a dictionary that grew as chunks were read. Equal indices are
/// equal strings, but the order of indices means nothing: where order matters, the program replaces an index with its
/// rank.
namespace headrace::fetch {

namespace {

bool is_equality(Operation operation) noexcept {
  return operation == Operation::equal || operation == Operation::not_equal;
}

bool is_constant(const Expression& expression) noexcept {
  return expression.operation() == Operation::literal || expression.operation() == Operation::text;
}

Ranks ranks_of(const std::shared_ptr<const DictionaryOrder>& order) {
  return order == nullptr ? nullptr : Ranks(order, &order->ranks);
}

/// Ranks of the entries of two dictionaries in one common order.
std::pair<Ranks, Ranks> common_ranks(const DictionaryOrder& left, const DictionaryOrder& right) {
  auto of_left = std::make_shared<std::vector<std::int32_t>>(left.codes.size());
  auto of_right = std::make_shared<std::vector<std::int32_t>>(right.codes.size());
  std::size_t l = 0;
  std::size_t r = 0;
  for (std::int32_t place = 0; l < left.codes.size() || r < right.codes.size(); ++place) {
    const bool end_left = l == left.codes.size();
    const bool end_right = r == right.codes.size();
    const bool take_left = !end_left && (end_right || left.entry(l) <= right.entry(r));
    const bool take_right = !end_right && (end_left || right.entry(r) <= left.entry(l));
    if (take_left) (*of_left)[static_cast<std::size_t>(left.codes[l++])] = place;
    if (take_right) (*of_right)[static_cast<std::size_t>(right.codes[r++])] = place;
  }
  return {std::move(of_left), std::move(of_right)};
}

/// The rank to compare a column's ranks with, so that `operation` holds for ranks exactly where it holds for strings.
std::int64_t place_of(const DictionaryOrder& order, Operation operation, const std::string& text) {
  const bool after = operation == Operation::less_equal || operation == Operation::greater;
  const auto entry = [&](std::int32_t code) { return order.dictionary->entry(static_cast<std::size_t>(code)); };
  const std::string_view wanted = text;
  const auto bound = after ? std::ranges::upper_bound(order.codes, wanted, {}, entry)
                           : std::ranges::lower_bound(order.codes, wanted, {}, entry);
  return (bound - order.codes.begin()) - (after ? 1 : 0);
}

}  // namespace

const Dictionary* dictionary_of(const TableView& table, const Expression& column) {
  if (column.operation() == Operation::cast) return dictionary_of(table, column.arguments()[0]);
  if (column.operation() != Operation::column) {
    throw UsageError("a string must be compared with a column of strings, not with another string");
  }
  return table.columns.at(column.column_number()).dictionary;
}

std::shared_ptr<const DictionaryOrder> order_of(const TableView& table, const Expression& expression) {
  if (infer(table, expression).type.id != Type::dictionary || is_constant(expression)) return nullptr;
  const Dictionary* const dictionary = dictionary_of(table, expression);
  return dictionary == nullptr ? nullptr : dictionary->order();
}

Ranks ranks_of(const TableView& table, const Expression& expression) { return ranks_of(order_of(table, expression)); }

std::int64_t Lowering::code_of(const Expression& literal, const Expression& column) const {
  if (literal.operation() != Operation::text) return literal.bits();
  const Dictionary* const dictionary = dictionary_of(column);
  if (dictionary == nullptr) {
    throw UsageError(
        fmt::format("the string '{}' cannot be compared with a column that has no dictionary", literal.string()));
  }
  return dictionary->find(literal.string());
}

void Lowering::add_rank(const Ranks& ranks) {
  if (ranks == nullptr) return;
  const auto found = std::ranges::find(out_.ranks, ranks);
  const auto number = static_cast<std::uint16_t>(found - out_.ranks.begin());
  if (found == out_.ranks.end()) {
    if (out_.ranks.size() == kRanksMax) {
      throw UsageError(fmt::format("a query can order the strings of at most {} columns", kRanksMax));
    }
    out_.ranks.push_back(ranks);
  }
  add({.op = Op::rank, .index = number, .value = static_cast<std::int64_t>(ranks->size())});
}

std::shared_ptr<const DictionaryOrder> Lowering::rank(const Expression& expression) {
  auto order = order_of(table_, expression);
  add_rank(ranks_of(order));
  return order;
}

void Lowering::lower_strings(Operation operation, Expression left, Expression right) {
  if (is_constant(left)) {
    std::swap(left, right);
    operation = mirrored(operation);
  }
  if (!is_constant(right)) return lower_columns_of_strings(operation, left, right);
  static_cast<void>(dictionary_of(left));
  lower(left);
  Instruction compare{.op = op_of(operation), .source = OperandSource::constant};
  if (right.operation() == Operation::literal && right.is_missing()) {
    compare.source = OperandSource::missing;
  } else if (const auto order = is_equality(operation) ? nullptr : rank(left); order == nullptr) {
    compare.value = code_of(right, left);
  } else if (right.operation() == Operation::text) {
    compare.value = place_of(*order, operation, right.string());
  } else {
    compare.value = order->ranks.at(static_cast<std::size_t>(right.bits()));
  }
  add(compare);
}

void Lowering::lower_columns_of_strings(Operation operation, const Expression& left, const Expression& right) {
  const Dictionary* const of_left = dictionary_of(left);
  const Dictionary* const of_right = dictionary_of(right);
  if ((of_left == nullptr) != (of_right == nullptr)) {
    throw UsageError("two columns of strings can be compared only if both have a dictionary or neither has");
  }
  std::pair<Ranks, Ranks> ranks;
  if (of_left != of_right) {
    ranks = common_ranks(*of_left->order(), *of_right->order());
  } else if (of_left != nullptr && !is_equality(operation)) {
    ranks.first = ranks.second = ranks_of(of_left->order());
  }
  const std::uint16_t slot = take_slot();
  lower(right);
  add_rank(ranks.second);
  add({.op = Op::save, .index = slot});
  lower(left);
  add_rank(ranks.first);
  add({.op = op_of(operation), .source = OperandSource::slot, .index = slot});
  --slots_;
}

}  // namespace headrace::fetch
