#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "headrace/operators/index.hpp"
#include "operators/retrieval/query_parser.hpp"

namespace headrace::operators {

namespace {

using Ids = std::vector<std::uint32_t>;

Ids complement(const Ids& ids, std::uint32_t document_count) {
  Ids others;
  others.reserve(document_count - ids.size());
  std::uint32_t next = 0;
  for (const std::uint32_t id : ids) {
    for (; next < id; ++next) others.push_back(next);
    next = id + 1;
  }
  for (; next < document_count; ++next) others.push_back(next);
  return others;
}

Ids both(const Ids& a, const Ids& b) {
  Ids ids;
  std::ranges::set_intersection(a, b, std::back_inserter(ids));
  return ids;
}

Ids either(const Ids& a, const Ids& b) {
  Ids ids;
  std::ranges::set_union(a, b, std::back_inserter(ids));
  return ids;
}

}  // namespace

std::vector<std::uint32_t> Index::matches(std::string_view text) const {
  const Expression expression = parse_query(text, text_rules());
  std::vector<Ids> found;  // of each node; operands come before the nodes that have them
  for (const ExpressionNode& node : expression.nodes) {
    switch (node.kind) {
      case ExpressionKind::term: {
        const auto term = find(expression.terms[node.left]);
        const auto ids = term ? postings(*term) : std::span<const std::uint32_t>{};
        found.emplace_back(ids.begin(), ids.end());
        break;
      }
      case ExpressionKind::negation: found.push_back(complement(found[node.left], document_count_)); break;
      case ExpressionKind::conjunction: found.push_back(both(found[node.left], found[node.right])); break;
      case ExpressionKind::disjunction: found.push_back(either(found[node.left], found[node.right])); break;
    }
  }
  return std::move(found.back());
}

}  // namespace headrace::operators
