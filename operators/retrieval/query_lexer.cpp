#include "operators/retrieval/query_lexer.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

namespace {

constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool same_word(std::string_view word, std::string_view keyword) noexcept {
  if (word.size() != keyword.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if ((word[i] | 0x20) != keyword[i]) return false;
  }
  return true;
}

TokenKind word_kind(std::string_view word) noexcept {
  if (same_word(word, "and")) return TokenKind::and_word;
  if (same_word(word, "or")) return TokenKind::or_word;
  if (same_word(word, "not")) return TokenKind::not_word;
  return TokenKind::word;
}

}  // namespace

std::string describe(const Token& token) {
  return token.kind == TokenKind::end ? "the end" : fmt::format("'{}'", token.text);
}

void throw_at(std::size_t position, std::string_view what) {
  throw UsageError(fmt::format("query, position {}: {}", position, what));
}

QueryLexer::QueryLexer(std::string_view text) : text_(text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) throw_at(valid + 1, "this byte is not UTF-8");
  token_ = read();
}

Token QueryLexer::next() {
  const Token now = token_;
  token_ = read();
  return now;
}

Token QueryLexer::read() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  const std::size_t begin = at_;
  if (begin == text_.size()) return {TokenKind::end, begin + 1, {}};
  const char first = text_[at_];
  if (first == '(' || first == ')') {
    ++at_;
    return {first == '(' ? TokenKind::open : TokenKind::close, begin + 1, text_.substr(begin, 1)};
  }
  while (at_ < text_.size() && is_term_byte(text_[at_])) ++at_;
  if (at_ == begin) {
    const auto byte = static_cast<unsigned char>(first);
    const auto shown = byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", first) : fmt::format("byte 0x{:02X}", byte);
    throw_at(begin + 1,
             fmt::format("{} has no place in a query; expected a word, AND, OR, NOT or a parenthesis", shown));
  }
  const std::string_view word = text_.substr(begin, at_ - begin);
  return {word_kind(word), begin + 1, word};
}

}  // namespace headrace::operators
