#pragma once

#include <cstdint>

namespace headrace::operators {

/// What is known about a character in advance, so that most words need no pass through ICU.
struct PlainLetter {
  enum class Kind : std::uint8_t {
    unknown,   ///< ICU has to be asked.
    spaced,    ///< A letter (ALetter of UAX #29) of a script that puts spaces between words: a run of these is a word.
    hangul,    ///< A syllable of Hangul: the same, but ICU divides them from other letters.
    unspaced,  ///< The letter's script puts no spaces between words.
  };
  Kind kind;
  bool decomposes;  ///< Under NFD, so that taking accents off may change it.
  char16_t folded;  ///< What NFKC_Casefold makes of it, whatever stands beside it.
};

/// Looks the character up in tables of 256 characters, which each thread makes, from ICU's data, when it first needs
/// them. Throws Exception when ICU fails.
[[nodiscard]] PlainLetter plain_letter(char16_t character);

}  // namespace headrace::operators
