#include "operators/retrieval/query_lexer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

namespace {

constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
/// Whether this byte begins a UTF-8 character.
constexpr bool is_first_byte(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }
constexpr bool ends_word(char c) noexcept { return is_space(c) || c == '(' || c == ')' || c == '"'; }

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

std::string describe_shortly(const Token& token) {
  constexpr std::size_t most = 40;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < token.text.size(); ++at) {
    if (is_first_byte(token.text[at]) && ++characters > most) return fmt::format("'{}...'", token.text.substr(0, at));
  }
  return describe(token);
}

void throw_at(std::size_t position, std::string_view what) {
  throw UsageError(fmt::format("query, position {}: {}", position, what));
}

QueryLexer::QueryLexer(std::string_view text) : text_(text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) throw_at(position_of(valid), "this byte is not UTF-8");
  token_ = read();
}

Token QueryLexer::next() {
  const Token now = token_;
  token_ = read();
  return now;
}

std::size_t QueryLexer::position_of(std::size_t byte) noexcept {
  const std::string_view passed = text_.substr(counted_bytes_, byte - counted_bytes_);
  position_ += static_cast<std::size_t>(std::ranges::count_if(passed, is_first_byte));
  counted_bytes_ = byte;
  return position_;
}

Token QueryLexer::read() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  const std::size_t begin = at_;
  if (begin == text_.size()) return {TokenKind::end, position_of(begin), {}};
  const char first = text_[at_];
  if (first == '(' || first == ')') {
    ++at_;
    return {first == '(' ? TokenKind::open : TokenKind::close, position_of(begin), text_.substr(begin, 1)};
  }
  if (first == '"') return read_quoted();
  while (at_ < text_.size() && !ends_word(text_[at_])) ++at_;
  const std::string_view word = text_.substr(begin, at_ - begin);
  return {word_kind(word), position_of(begin), word};
}

Token QueryLexer::read_quoted() {
  const std::size_t begin = at_;
  const std::size_t position = position_of(begin);
  const std::size_t end = text_.find('"', begin + 1);
  if (end == std::string_view::npos) throw_at(position, "this quote is not closed");
  at_ = end + 1;
  return {TokenKind::word, position, text_.substr(begin + 1, end - begin - 1)};
}

}  // namespace headrace::operators
