#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::operators {

/// How text becomes terms. An index keeps its rules, so that queries are read as its documents were.
struct TextRules {
  enum class Words : std::uint8_t {
    ascii,    ///< Runs of ASCII letters, digits and bytes above 127; ASCII letters lower-cased. Indexes of version 1.
    unicode,  ///< Words of UAX #29 after NFKC case folding; bigrams where a script puts no spaces between words.
  };
  Words words = Words::unicode;
  /// Takes accents (U+0300 to U+036F) off: ecole finds école. Only of Unicode words.
  bool fold_diacritics = false;
  /// Words become their stems by the Snowball algorithm of this name, one of stem_languages(): running finds runs.
  /// Empty for none. Accents are taken off before.
  std::string stem{};
  friend bool operator==(const TextRules&, const TextRules&) = default;
};

/// The names of the Snowball algorithms of the libstemmer that Headrace runs with, in the order of their bytes; none
/// where it was built without.
[[nodiscard]] std::vector<std::string> stem_languages();

}  // namespace headrace::operators
