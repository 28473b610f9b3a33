#include "operators/retrieval/brute_force.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "headrace/base/error.hpp"
#include "operators/retrieval/query_parser.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

namespace {

using Words = std::vector<std::uint32_t>;

/// Whether a document with these words satisfies the node.
bool holds(const Expression& expression, std::span<const std::optional<std::uint32_t>> terms, const Words& document,
           std::uint32_t at) {
  const ExpressionNode& node = expression.nodes[at];
  const auto operand = [&](std::uint32_t i) { return holds(expression, terms, document, i); };
  switch (node.kind) {
    case ExpressionKind::term:
      return terms[node.left] && std::binary_search(document.begin(), document.end(), *terms[node.left]);
    case ExpressionKind::negation: return !operand(node.left);
    case ExpressionKind::conjunction: return operand(node.left) && operand(node.right);
    case ExpressionKind::disjunction: return operand(node.left) || operand(node.right);
  }
  return false;
}

}  // namespace

BruteForce::BruteForce(std::span<const std::string> documents, const TextRules& rules) : rules_(rules) {
  documents_.reserve(documents.size());
  Tokenizer tokenizer(rules);
  for (const auto& document : documents) {
    if (const auto valid = valid_utf8_prefix(document); valid != document.size()) {
      throw DataError(fmt::format("document {} is not UTF-8 at byte {}", documents_.size(), valid));
    }
    Words words;
    for (const std::string& term : tokenizer.split(document)) {
      words.push_back(words_.try_emplace(term, static_cast<std::uint32_t>(words_.size())).first->second);
    }
    std::sort(words.begin(), words.end());
    documents_.push_back(std::move(words));
  }
}

RetrievalAnswer BruteForce::answer(std::string_view text) const {
  const Expression expression = parse_query(text, rules_);
  std::vector<std::optional<std::uint32_t>> terms;
  for (const auto& term : expression.terms) {
    const auto word = words_.find(term);
    terms.push_back(word == words_.end() ? std::nullopt : std::optional(word->second));
  }
  RetrievalAnswer answer{};
  std::fill(std::begin(answer.ids), std::end(answer.ids), kNoDocument);
  const auto root = static_cast<std::uint32_t>(expression.nodes.size() - 1);
  for (std::uint32_t id = 0; id < documents_.size(); ++id) {
    if (!holds(expression, terms, documents_[id], root)) continue;
    if (answer.hits < kAnswerIds) answer.ids[answer.hits] = id;
    ++answer.hits;
  }
  return answer;
}

RetrievalAnswer reference_answer(std::span<const std::string> documents, std::string_view text) {
  return BruteForce(documents).answer(text);
}

}  // namespace headrace::operators
