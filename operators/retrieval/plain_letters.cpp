#include "operators/retrieval/plain_letters.hpp"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf16.h>

#include <array>
#include <cstddef>
#include <memory>

#include "operators/retrieval/unicode_words.hpp"

namespace headrace::operators {

namespace {

constexpr std::size_t kPage = 256;
constexpr UChar32 kSyllablesFirst = 0xAC00;
constexpr UChar32 kSyllablesLast = 0xD7A3;
using Page = std::array<PlainLetter, kPage>;

PlainLetter::Kind kind_of(UChar32 folded) noexcept {
  if (is_unspaced(folded)) return PlainLetter::Kind::unspaced;
  const bool letter = u_getIntPropertyValue(folded, UCHAR_WORD_BREAK) == U_WB_ALETTER && u_isalnum(folded) != 0;
  if (!letter) return PlainLetter::Kind::unknown;
  UErrorCode status = U_ZERO_ERROR;
  if (uscript_getScript(folded, &status) != USCRIPT_HANGUL) return PlainLetter::Kind::spaced;
  return folded >= kSyllablesFirst && folded <= kSyllablesLast ? PlainLetter::Kind::hangul : PlainLetter::Kind::unknown;
}

std::unique_ptr<const Page> make_page(std::size_t number) {
  UErrorCode status = U_ZERO_ERROR;
  const auto* const folding = icu::Normalizer2::getNFKCCasefoldInstance(status);
  check_icu(status, "to load its rules");
  const auto* const decomposing = icu::Normalizer2::getNFDInstance(status);
  check_icu(status, "to load its rules");
  auto page = std::make_unique<Page>();
  for (std::size_t i = 0; i < kPage; ++i) {
    const auto character = static_cast<UChar32>(number * kPage + i);
    // Normalisation of text works independently on either side of a boundary.
    if (U_IS_SURROGATE(character) || folding->hasBoundaryBefore(character) == 0) continue;
    const icu::UnicodeString folded = folding->normalize(icu::UnicodeString(character), status);
    check_icu(status, "to fold text");
    if (folded.length() != 1) continue;
    icu::UnicodeString apart;
    const bool decomposes = decomposing->getDecomposition(folded.char32At(0), apart) != 0;
    (*page)[i] = {kind_of(folded.char32At(0)), decomposes, folded.charAt(0)};
  }
  return page;
}

}  // namespace

PlainLetter plain_letter(char16_t character) {
  static thread_local std::array<std::unique_ptr<const Page>, kPage> pages;
  auto& page = pages[character / kPage];
  if (!page) page = make_page(character / kPage);
  return (*page)[character % kPage];
}

}  // namespace headrace::operators
