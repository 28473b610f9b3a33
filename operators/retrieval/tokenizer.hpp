#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/operators/detail/text_rules.hpp"
#include "operators/retrieval/plain_letters.hpp"

/// Defines terms, for documents and queries alike.
namespace headrace::operators {

/// Longer words are cut to this many bytes, or fewer, so that no character is split.
inline constexpr std::size_t kTermBytesMax = 128;

/// Splits text into terms. Used by one thread at a time. Cheap to construct, because each thread caches its ICU
/// objects.
class Tokenizer {
 public:
  /// Throws UsageError if the language to stem does not exist.
  explicit Tokenizer(TextRules rules = {});

  [[nodiscard]] const TextRules& rules() const noexcept { return rules_; }

  /// The terms of `text`, valid UTF-8, in order. They are valid until the next call. Throws Exception if ICU or a
  /// stemmer fails.
  [[nodiscard]] const std::vector<std::string>& split(std::string_view text);

 private:
  void add(std::string_view term);
  /// If the text has plain letters alone, all of scripts with spaces or all of scripts without, adds its terms, which
  /// are those of for_each_unicode_word(), several times faster. Otherwise returns false and adds none.
  bool add_plain_letters(std::string_view text);
  bool fold_plain_letters(std::string_view text, PlainLetter::Kind& kind);

  TextRules rules_;
  std::string folded_;
  std::vector<std::string> terms_;
};

/// Calls use(begin, end) for the words that UAX #29 finds in ASCII text, like ICU but many times faster. Public for the
/// test that compares them.
template <class Use>
void for_each_ascii_word(std::string_view text, Use use) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  // The characters that join two letters, or two digits (WB6, WB7, WB11, WB12; ICU leaves the colon out).
  const auto joins = [&](std::size_t i) {
    const char c = at(i);
    const bool letters = is_letter(at(i - 1)) && is_letter(at(i + 1)) && (c == '\'' || c == '.');
    const bool digits = is_digit(at(i - 1)) && is_digit(at(i + 1)) && (c == '\'' || c == '.' || c == ',' || c == ';');
    return letters || digits;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    bool is_word = false;
    while (i < text.size()) {
      const char c = text[i];
      const bool inside = is_digit(c) || is_letter(c);
      if (!inside && c != '_' && (i == begin || !joins(i))) break;
      is_word = is_word || inside;
      ++i;
    }
    if (is_word) use(begin, i);
    if (i == begin) ++i;
  }
}

}  // namespace headrace::operators
