#include <limits>
#include <utility>
#include <vector>

#include "headrace/operators/index.hpp"
#include "operators/retrieval/matches.hpp"

namespace headrace::operators {

IdSet find_matches(const Index& index, const Expression& expression) {
  std::vector<IdSet> found;  // of each node; operands come before the nodes that use them
  found.reserve(expression.nodes.size());
  for (const ExpressionNode& node : expression.nodes) {
    switch (node.kind) {
      case ExpressionKind::term: {
        const auto term = index.find(expression.terms[node.left]);
        found.push_back(term ? IdSet::borrowed(index.postings(*term)) : IdSet());
        break;
      }
      case ExpressionKind::negation: found.push_back(std::move(found[node.left]).complement()); break;
      case ExpressionKind::conjunction: found.push_back(found[node.left] & found[node.right]); break;
      case ExpressionKind::disjunction: found.push_back(found[node.left] | found[node.right]); break;
    }
  }
  return std::move(found.back());
}

std::vector<std::uint32_t> Index::matches(std::string_view text) const {
  return page(text, {.offset = 0, .limit = std::numeric_limits<std::uint64_t>::max()}).ids;
}

MatchPage Index::page(std::string_view text, PageRange range) const {
  const Expression expression = parse_query(text, text_rules());
  const IdSet found = find_matches(*this, expression);
  return {static_cast<std::uint32_t>(found.count(document_count_)),
          found.page(document_count_, range.offset, range.limit)};
}

}  // namespace headrace::operators
