#include "operators/retrieval/query_parser.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "headrace/operators/detail/retrieval_query.hpp"
#include "operators/retrieval/query_lexer.hpp"
#include "operators/retrieval/tokenizer.hpp"

namespace headrace::operators {

namespace {

static_assert(kQueryTermsMax >= kQueryLeavesMax, "a query with few enough terms also has few enough distinct ones");

/// Recursive descent over
///   disjunction = conjunction { OR conjunction }
///   conjunction = negation { [AND] negation }
///   negation    = { NOT } ( word | quoted | "(" disjunction ")" )
class Parser {
 public:
  Parser(std::string_view text, const TextRules& rules) : lexer_(text), tokenizer_(rules) {}

  Expression parse() {
    expression_.nodes.reserve(16);
    expression_.terms.reserve(8);
    if (lexer_.peek().kind == TokenKind::end) throw UsageError("the query is empty: expected a term, NOT or '('");
    disjunction();
    const Token& rest = lexer_.peek();
    if (rest.kind != TokenKind::end) {
      throw_at(rest.position, fmt::format("{} closes nothing; expected a term, AND, OR or the end", describe(rest)));
    }
    return std::move(expression_);
  }

 private:
  std::uint32_t disjunction() {
    std::uint32_t left = conjunction();
    while (lexer_.peek().kind == TokenKind::or_word) {
      lexer_.next();
      left = add({ExpressionKind::disjunction, left, conjunction()});
    }
    return left;
  }

  std::uint32_t conjunction() {
    std::uint32_t left = negation();
    while (true) {
      const TokenKind kind = lexer_.peek().kind;
      if (kind == TokenKind::and_word) {
        lexer_.next();
      } else if (kind != TokenKind::word && kind != TokenKind::not_word && kind != TokenKind::open) {
        return left;
      }
      left = add({ExpressionKind::conjunction, left, negation()});
    }
  }

  std::uint32_t negation() {
    bool negated = false;
    for (; lexer_.peek().kind == TokenKind::not_word; lexer_.next()) negated = !negated;
    const std::uint32_t operand = primary();
    if (!negated) return operand;
    const ExpressionNode last = expression_.nodes[operand];
    if (last.kind != ExpressionKind::negation) return add({ExpressionKind::negation, operand});
    expression_.nodes.pop_back();  // NOT (NOT a) is a, which keeps the number of nodes within kQueryNodesMax
    return last.left;
  }

  std::uint32_t primary() {
    const Token token = lexer_.next();
    if (token.kind == TokenKind::word) return word(token);
    if (token.kind != TokenKind::open) {
      throw_at(token.position, fmt::format("expected a term, NOT or '(' but found {}", describe(token)));
    }
    if (++depth_ > kQueryDepthMax) {
      throw_at(token.position, fmt::format("more than {} nested parentheses", kQueryDepthMax));
    }
    const std::uint32_t inner = disjunction();
    --depth_;
    const Token close = lexer_.next();
    if (close.kind != TokenKind::close) {
      throw_at(close.position,
               fmt::format("expected ')' for the '(' at position {} but found {}", token.position, describe(close)));
    }
    return inner;
  }

  /// Adds all terms of a word.
  std::uint32_t word(const Token& token) {
    const auto& terms = tokenizer_.split(token.text);
    if (terms.empty()) {
      throw_at(token.position, fmt::format("{} has no letter or digit to search for", describe(token)));
    }
    std::vector<std::uint32_t> numbers;  // a term that occurs twice in a word is tested once
    std::uint32_t all = 0;
    for (const std::string& text : terms) {
      const std::uint32_t number = term(text);
      if (std::ranges::find(numbers, number) != numbers.end()) continue;
      numbers.push_back(number);
      if (++leaves_ > kQueryLeavesMax) throw_too_long(token, terms.size());
      const std::uint32_t leaf = add({ExpressionKind::term, number});
      all = numbers.size() == 1 ? leaf : add({ExpressionKind::conjunction, all, leaf});
    }
    return all;
  }

  std::uint32_t term(const std::string& text) {
    auto& terms = expression_.terms;
    const auto known = std::ranges::find(terms, text);  // there are few terms, so a hash lookup would take longer
    const auto number = static_cast<std::uint32_t>(known - terms.begin());
    if (known == terms.end()) terms.push_back(text);
    return number;
  }

  std::uint32_t add(ExpressionNode node) {
    expression_.nodes.push_back(node);
    return static_cast<std::uint32_t>(expression_.nodes.size() - 1);
  }

  /// Throws for the word that exceeds the number of terms of a query.
  [[noreturn]] static void throw_too_long(const Token& token, std::size_t terms) {
    const std::string split = terms == 1 ? "" : fmt::format(", which is split into {} terms,", terms);
    throw_at(token.position,
             fmt::format("with {}{} the query has more than {} terms; search for fewer or shorter words",
                         describe_shortly(token), split, kQueryLeavesMax));
  }

  QueryLexer lexer_;
  Tokenizer tokenizer_;
  Expression expression_;
  std::size_t leaves_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace

Expression parse_query(std::string_view text, const TextRules& rules) { return Parser(text, rules).parse(); }

}  // namespace headrace::operators
