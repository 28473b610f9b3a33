#include "operators/retrieval/unicode_words.hpp"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <memory>
#include <string>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

constexpr UChar32 kAccentsFirst = 0x0300;
constexpr UChar32 kAccentsLast = 0x036F;
constexpr UChar32 kLongVowel = 0x30FC;  // used by both kana, and so without a script

/// The ICU objects of one thread. Making a break iterator takes far longer than splitting most texts.
struct Icu {
  const icu::Normalizer2* folding = nullptr;
  const icu::Normalizer2* decomposing = nullptr;
  std::unique_ptr<icu::BreakIterator> words;

  Icu() {
    UErrorCode status = U_ZERO_ERROR;
    folding = icu::Normalizer2::getNFKCCasefoldInstance(status);
    decomposing = icu::Normalizer2::getNFDInstance(status);
    words.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
    check_icu(status, "to load its rules");
  }
};

Icu& icu_of_thread() {
  static thread_local Icu icu;
  return icu;
}

icu::UnicodeString without_accents(const Icu& icu, const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString apart = icu.decomposing->normalize(text, status);
  check_icu(status, "to decompose text");
  icu::UnicodeString kept;
  for (int32_t at = 0; at < apart.length(); at = apart.moveIndex32(at, 1)) {
    const UChar32 c = apart.char32At(at);
    if (c < kAccentsFirst || c > kAccentsLast) kept.append(c);
  }
  icu::UnicodeString folded = icu.folding->normalize(kept, status);
  check_icu(status, "to compose text");
  return folded;
}

class Splitter {
 public:
  Splitter(Icu& icu, const icu::UnicodeString& text, const std::function<void(std::string_view)>& use)
      : icu_(icu), text_(text), use_(use) {}

  void split() {
    int32_t at = 0;
    while (at < text_.length()) {
      const int32_t spaced = run_end(at, false);
      split_words(at, spaced);
      const int32_t unspaced = run_end(spaced, true);
      split_pairs(spaced, unspaced);
      at = unspaced;
    }
  }

 private:
  [[nodiscard]] int32_t run_end(int32_t at, bool unspaced) const {
    while (at < text_.length() && is_unspaced(text_.char32At(at)) == unspaced) at = text_.moveIndex32(at, 1);
    return at;
  }

  [[nodiscard]] static bool has_letter_or_digit(const icu::UnicodeString& part, int32_t at, int32_t end) {
    for (; at < end; at = part.moveIndex32(at, 1)) {
      if (u_isalnum(part.char32At(at)) != 0) return true;
    }
    return false;
  }

  void give(int32_t begin, int32_t end) {
    term_.clear();
    text_.tempSubStringBetween(begin, end).toUTF8String(term_);
    use_(term_);
  }

  void split_words(int32_t begin, int32_t end) {
    if (begin == end) return;
    const icu::UnicodeString part = text_.tempSubStringBetween(begin, end);
    icu_.words->setText(part);
    int32_t from = icu_.words->first();
    for (int32_t to = icu_.words->next(); to != icu::BreakIterator::DONE; from = to, to = icu_.words->next()) {
      if (has_letter_or_digit(part, from, to)) give(begin + from, begin + to);
    }
  }

  void split_pairs(int32_t begin, int32_t end) {
    if (begin == end) return;
    int32_t second = text_.moveIndex32(begin, 1);
    if (second == end) return give(begin, end);
    for (int32_t first = begin; second < end; first = text_.moveIndex32(first, 1)) {
      const int32_t behind = text_.moveIndex32(second, 1);
      give(first, behind);
      second = behind;
    }
  }

  Icu& icu_;
  const icu::UnicodeString& text_;
  const std::function<void(std::string_view)>& use_;
  std::string term_;
};

}  // namespace

void check_icu(UErrorCode status, std::string_view doing) {
  if (U_SUCCESS(status)) return;
  throw Exception(status == U_MEMORY_ALLOCATION_ERROR ? Errc::out_of_memory : Errc::system,
                  fmt::format("ICU failed {}: {}", doing, u_errorName(status)));
}

bool is_unspaced(UChar32 c) noexcept {
  if (c < 0x0E00) return false;
  if (c == kLongVowel) return true;
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(c, &status)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR: break;
    default: return false;
  }
  return u_isalnum(c) != 0 || (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0;
}

void for_each_unicode_word(std::string_view text, bool fold_diacritics,
                           const std::function<void(std::string_view)>& use) {
  constexpr std::size_t most = std::size_t{1} << 30;
  if (text.size() > most)
    throw DataError(fmt::format("a text of {} bytes is too long: at most {} are possible", text.size(), most));
  Icu& icu = icu_of_thread();
  UErrorCode status = U_ZERO_ERROR;
  const auto given = icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
  icu::UnicodeString folded = icu.folding->normalize(given, status);
  check_icu(status, "to fold text");
  if (fold_diacritics) folded = without_accents(icu, folded);
  // Some versions of ICU count it as a letter, which keeps addresses whole, and others do not. Replacing it gives the
  // same terms with each.
  folded.findAndReplace(icu::UnicodeString(u'@'), icu::UnicodeString(u' '));
  Splitter(icu, folded, use).split();
}

}  // namespace headrace::operators
