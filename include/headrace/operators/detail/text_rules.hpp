#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::operators {

/// How text becomes terms. An index stores its rules, so that queries are split like its documents.
struct TextRules {
  enum class Words : std::uint8_t {
    ascii,    ///< Runs of ASCII letters, digits and bytes above 127; ASCII letters are lower-cased. Indexes of version
              ///< 1.
    unicode,  ///< Words of UAX #29 after NFKC case folding; bigrams in scripts without spaces between words.
  };
  Words words = Words::unicode;
  /// Removes accents (U+0300 to U+036F): ecole finds école. For Unicode words only.
  bool fold_diacritics = false;
  /// The Snowball algorithm, one of stem_languages(), that reduces words to stems: running finds runs. Empty for none.
  /// Accents are removed first.
  std::string stem{};
  friend bool operator==(const TextRules&, const TextRules&) = default;
};

/// The names of the Snowball algorithms in the libstemmer that Headrace runs with, in byte order; empty in a build
/// without it.
[[nodiscard]] std::vector<std::string> stem_languages();

}  // namespace headrace::operators
