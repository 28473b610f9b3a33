#pragma once

#include <unicode/umachine.h>
#include <unicode/utypes.h>

#include <functional>
#include <string_view>

namespace headrace::operators {

/// Throws the Exception "ICU failed <doing>" where `status` is a failure.
void check_icu(UErrorCode status, std::string_view doing);

/// Whether the character is of a script that puts no spaces between words.
[[nodiscard]] bool is_unspaced(UChar32 character) noexcept;

/// Calls `use` for each term of text, valid UTF-8, in order: it is case-folded and composed by NFKC_Casefold (Unicode,
/// section 3.13), which also drops what is ignorable, such as a byte order mark; then split into words at the
/// boundaries of UAX #29. Segments without a letter or digit are no words. Of scripts that put no spaces between words
/// (Han, kana, Thai, Lao, Khmer, Myanmar) every two characters that follow each other are a term, and a character that
/// is alone.
/// @param fold_diacritics  whether U+0300 to U+036F are taken off.
/// Throws Exception when ICU fails.
void for_each_unicode_word(std::string_view text, bool fold_diacritics,
                           const std::function<void(std::string_view)>& use);

}  // namespace headrace::operators
