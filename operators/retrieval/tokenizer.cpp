#include "operators/retrieval/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "operators/retrieval/stemming.hpp"
#include "operators/retrieval/unicode_words.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

namespace {

/// Letters, digits, and all bytes of characters beyond ASCII: a term of an index of version 1.
constexpr bool is_term_byte(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  const auto lower = static_cast<unsigned char>(byte | 0x20U);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z');
}

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool is_ascii(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

std::string lowered(std::string_view word) {
  std::string term(word);
  std::ranges::transform(term, term.begin(), lower);
  return term;
}

std::string_view cut(std::string_view term) noexcept {
  if (term.size() <= kTermBytesMax) return term;
  std::size_t bytes = kTermBytesMax;
  while (bytes > 0 && (static_cast<unsigned char>(term[bytes]) & 0xC0) == 0x80) --bytes;
  return term.substr(0, bytes);
}

}  // namespace

Tokenizer::Tokenizer(TextRules rules) : rules_(std::move(rules)) { check_stem_language(rules_.stem); }

void Tokenizer::add(std::string_view term) {
  term = cut(term);
  if (!rules_.stem.empty()) term = cut(stem_of(term, rules_.stem));  // a stem may be longer than its word
  terms_.emplace_back(term);
}

bool Tokenizer::fold_plain_letters(std::string_view text, PlainLetter::Kind& kind) {
  folded_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const auto character = decode_utf8(text, at);
    if (character > 0xFFFF) return false;
    const PlainLetter letter = plain_letter(static_cast<char16_t>(character));
    if (letter.kind == PlainLetter::Kind::unknown || (letter.decomposes && rules_.fold_diacritics)) return false;
    if (!folded_.empty() && letter.kind != kind) return false;
    kind = letter.kind;
    append_utf8(folded_, letter.folded);
  }
  return !folded_.empty();
}

bool Tokenizer::add_plain_letters(std::string_view text) {
  auto kind = PlainLetter::Kind::unknown;
  if (!fold_plain_letters(text, kind)) return false;
  const std::string_view word = folded_;
  std::size_t first = 0;
  std::size_t second = next_utf8(word, first);
  if (kind != PlainLetter::Kind::unspaced || second == word.size()) {
    add(word);
    return true;
  }
  while (second < word.size()) {
    const std::size_t behind = next_utf8(word, second);
    add(word.substr(first, behind - first));
    first = second;
    second = behind;
  }
  return true;
}

const std::vector<std::string>& Tokenizer::split(std::string_view text) {
  terms_.clear();
  if (rules_.words == TextRules::Words::ascii) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      while (at < text.size() && is_term_byte(text[at])) ++at;
      if (at > begin) add(lowered(text.substr(begin, at - begin)));
      if (at == begin) ++at;
    }
  } else if (is_ascii(text)) {
    for_each_ascii_word(text,
                        [&](std::size_t begin, std::size_t end) { add(lowered(text.substr(begin, end - begin))); });
  } else if (!add_plain_letters(text)) {
    for_each_unicode_word(text, rules_.fold_diacritics, [&](std::string_view term) { add(term); });
  }
  return terms_;
}

}  // namespace headrace::operators
