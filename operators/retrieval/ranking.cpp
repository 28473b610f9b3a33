#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "operators/retrieval/matches.hpp"

namespace headrace::operators {

namespace {

void check(const Index& index, const Bm25& bm25) {
  if (!index.has_frequencies()) {
    throw UsageError(
        "ranking needs an index with term frequencies; build it with frequencies (headrace index build --frequencies)");
  }
  const bool k1_fits = bm25.k1 >= 0 && std::isfinite(bm25.k1);
  const bool b_fits = bm25.b >= 0 && bm25.b <= 1;
  if (!k1_fits) {
    throw UsageError(fmt::format("ranking: k1 must be 0 or more, not {}", bm25.k1));
  }
  if (!b_fits) throw UsageError(fmt::format("ranking: b must be 0 to 1, not {}", bm25.b));
}

/// Marks the terms under an even number of negations, because only these make a document relevant.
void mark_wanted(const Expression& expression, std::uint32_t at, bool negated, std::vector<bool>& wanted) {
  const ExpressionNode& node = expression.nodes[at];
  switch (node.kind) {
    case ExpressionKind::term:
      if (!negated) wanted[node.left] = true;
      break;
    case ExpressionKind::negation: mark_wanted(expression, node.left, !negated, wanted); break;
    default:
      mark_wanted(expression, node.left, negated, wanted);
      mark_wanted(expression, node.right, negated, wanted);
      break;
  }
}

/// Adds the term's weight to the scores of the documents that have it.
void add_scores(const Index& index, const Bm25& bm25, std::uint32_t term, std::vector<RankedDocument>& documents) {
  const auto ids = index.postings(term);
  const auto frequencies = index.frequencies(term);
  const auto with = static_cast<double>(ids.size());
  const double weight = std::log1p((index.document_count() - with + 0.5) / (with + 0.5));
  const double mean = index.mean_length();
  std::size_t at = 0;
  for (RankedDocument& document : documents) {
    at = gallop(ids, at, document.id);
    if (at == ids.size()) return;
    if (ids[at] != document.id) continue;
    const double frequency = frequencies[at];
    const double length = index.lengths()[document.id] / mean;
    document.score += weight * (frequency * (bm25.k1 + 1)) / (frequency + bm25.k1 * (1 - bm25.b + bm25.b * length));
  }
}

/// At most `limit` of the best documents, from number `offset` on.
std::vector<RankedDocument> page_of(std::vector<RankedDocument> documents, PageRange range) {
  const std::uint64_t begin = std::min<std::uint64_t>(range.offset, documents.size());
  const std::uint64_t end = begin + std::min<std::uint64_t>(range.limit, documents.size() - begin);
  const auto last = documents.begin() + static_cast<std::ptrdiff_t>(end);
  std::partial_sort(documents.begin(), last, documents.end(), [](const RankedDocument& a, const RankedDocument& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  });
  return {documents.begin() + static_cast<std::ptrdiff_t>(begin), last};
}

}  // namespace

RankedPage Index::rank(std::string_view text, PageRange range, const Bm25& bm25) const {
  check(*this, bm25);
  const Expression expression = parse_query(text, text_rules());
  const IdSet found = find_matches(*this, expression);
  std::vector<RankedDocument> documents;
  for (const std::uint32_t id : found.page(document_count_, 0, std::numeric_limits<std::uint64_t>::max())) {
    documents.push_back({id, 0});
  }
  std::vector<bool> wanted(expression.terms.size());
  mark_wanted(expression, static_cast<std::uint32_t>(expression.nodes.size() - 1), false, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    if (const auto term = find(expression.terms[i])) add_scores(*this, bm25, *term, documents);
  }
  const auto hits = static_cast<std::uint32_t>(documents.size());
  return {hits, page_of(std::move(documents), range)};
}

}  // namespace headrace::operators
