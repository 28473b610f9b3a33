#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/operators/detail/text_rules.hpp"

/// Words to their stems, by the algorithms of Snowball (https://snowballstem.org) as libstemmer has them.
namespace headrace::operators {

/// The stem of a word in lower case, valid UTF-8: never empty where the word is not. Valid until this thread's next
/// call. Apostrophes may be U+0027, U+2018, U+2019 or U+201B, as Snowball asks of its callers.
/// @param language  one of stem_languages(); throws UsageError as check_stem_language() where it is not.
/// Throws Exception when memory runs out.
[[nodiscard]] std::string_view stem_of(std::string_view word, const std::string& language);

/// Throws UsageError, which lists stem_languages(), unless the language is one of them or empty.
void check_stem_language(const std::string& language);

/// Tells versions of an algorithm apart, which libstemmer has no numbers for: XXH64 of the stems of some thousand
/// made-up words. Versions that differ in few words only may have the same. Computed once for each language.
[[nodiscard]] std::uint64_t stem_fingerprint(const std::string& language);

}  // namespace headrace::operators
