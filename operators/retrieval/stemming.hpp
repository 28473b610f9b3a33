#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/operators/detail/text_rules.hpp"

/// Reduces words to stems with the Snowball algorithms (https://snowballstem.org) of libstemmer.
namespace headrace::operators {

/// The stem of a lower-case word in valid UTF-8. It is empty only if the word is, and valid until this thread's next
/// call. Apostrophes may be U+0027, U+2018, U+2019 or U+201B, as Snowball requires of its callers. Throws UsageError as
/// check_stem_language() does, and Exception when memory runs out.
/// @param language  one of stem_languages()
[[nodiscard]] std::string_view stem_of(std::string_view word, const std::string& language);

/// Throws UsageError, listing stem_languages(), unless the language is one of them or empty.
void check_stem_language(const std::string& language);

/// Distinguishes versions of an algorithm, because libstemmer does not number them: XXH64 of the stems of some thousand
/// made-up words. Versions that differ in few words may share a fingerprint. Computed once for each language.
[[nodiscard]] std::uint64_t stem_fingerprint(const std::string& language);

}  // namespace headrace::operators
