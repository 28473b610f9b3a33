#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What a term is, for documents and for queries alike.
namespace headrace::operators {

inline constexpr std::size_t kTermBytesMax = 128;

/// Letters, digits, and every byte of a character beyond ASCII.
[[nodiscard]] constexpr bool is_term_byte(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  const auto lower = static_cast<unsigned char>(byte | 0x20U);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z');
}

/// Puts the lower-cased term that stands for `word`, a run of term bytes of valid UTF-8, into `term`: at most
/// kTermBytesMax bytes, whole characters.
void normalise_term(std::string_view word, std::string& term);

/// Calls `use(std::string_view term)` for each term of `text`, valid UTF-8, in order. `scratch` saves an allocation.
template <class Use>
void for_each_term(std::string_view text, std::string& scratch, Use use) {
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && !is_term_byte(text[at])) ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_term_byte(text[at])) ++at;
    if (at == begin) return;
    normalise_term(text.substr(begin, at - begin), scratch);
    use(std::string_view(scratch));
  }
}

}  // namespace headrace::operators
