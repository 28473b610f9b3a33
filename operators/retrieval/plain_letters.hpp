#pragma once

#include <cstdint>

namespace headrace::operators {

/// Precomputed properties of a character, so that most words need no call of ICU.
struct PlainLetter {
  enum class Kind : std::uint8_t {
    unknown,   ///< ICU must decide.
    spaced,    ///< A letter (ALetter of UAX #29) of a script with spaces between words: a run of these is a word.
    hangul,    ///< A Hangul syllable: the same, except that ICU separates them from other letters.
    unspaced,  ///< A letter of a script without spaces between words.
  };
  Kind kind;
  bool decomposes;  ///< Decomposes under NFD, so removing accents may change it.
  char16_t folded;  ///< Its result under NFKC_Casefold, independent of its neighbours.
};

/// Looks the character up in tables of 256 characters. Each thread builds a table from ICU's data when it first needs
/// it. Throws Exception if ICU fails.
[[nodiscard]] PlainLetter plain_letter(char16_t character);

}  // namespace headrace::operators
