#pragma once

#include <unicode/umachine.h>
#include <unicode/utypes.h>

#include <functional>
#include <string_view>

namespace headrace::operators {

/// Throws the Exception "ICU failed <doing>" if `status` is a failure.
void check_icu(UErrorCode status, std::string_view doing);

/// Whether the character's script has no spaces between words.
[[nodiscard]] bool is_unspaced(UChar32 character) noexcept;

/// Calls `use` for each term of valid UTF-8 text, in order. The text is case-folded and composed by NFKC_Casefold
/// (Unicode, section 3.13), which also drops ignorable characters such as a byte order mark, and then split into words
/// at the boundaries of UAX #29. Segments without a letter or digit are dropped. In scripts without spaces between
/// words (Han, kana, Thai, Lao, Khmer, Myanmar), every two consecutive characters are a term, and so is a single
/// character. Throws Exception if ICU fails.
/// @param fold_diacritics  whether to remove U+0300 to U+036F
void for_each_unicode_word(std::string_view text, bool fold_diacritics,
                           const std::function<void(std::string_view)>& use);

}  // namespace headrace::operators
