#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "operators/retrieval/checksum.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "operators/retrieval/unicode_words.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {
namespace {

using std::string_literals::operator""s;

std::vector<std::string> terms_of(std::string_view text, const TextRules& rules = {}) {
  return Tokenizer(rules).split(text);
}

TEST(RetrievalText, TermsAreWordsCaseFolded) {
  EXPECT_THAT(terms_of("The cat's 2nd life; \"CAT\"-like! 3.14 of a_b"),
              ::testing::ElementsAre("the", "cat's", "2nd", "life", "cat", "like", "3.14", "of", "a_b"));
  EXPECT_THAT(terms_of("Café «Ünal» СТРАНА"), ::testing::ElementsAre("café", "ünal", "страна"));
  EXPECT_THAT(terms_of("\xEF\xBB\xBFhello\xC2\xA0there"), ::testing::ElementsAre("hello", "there"))
      << "a byte order mark";
  EXPECT_THAT(terms_of("cafe\xCC\x81"), ::testing::ElementsAre("café")) << "decomposed";
}

TEST(RetrievalText, ScriptsWithoutSpacesGivePairs) {
  EXPECT_THAT(terms_of("東京都、大阪 x 京"), ::testing::ElementsAre("東京", "京都", "大阪", "x", "京"));
}

TEST(RetrievalText, AccentsAreTakenOffWhereThatIsAskedFor) {
  EXPECT_THAT(terms_of("Crème Ёлка", {.fold_diacritics = true}), ::testing::ElementsAre("creme", "елка"));
}

TEST(RetrievalText, IndexesOfVersion1SplitAsTheyDid) {
  const TextRules ascii{.words = TextRules::Words::ascii};
  EXPECT_THAT(terms_of("The cat's CAFé «Ünal»", ascii), ::testing::ElementsAre("the", "cat", "s", "café", "«Ünal»"));
}

/// ASCII text is split by Headrace's own code.
TEST(RetrievalText, AsciiIsSplitAsIcuDoes) {
  std::mt19937 random(7);
  constexpr std::string_view kCharacters = "aZ09__''..,,;;:: -\"\n\t@";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const std::size_t length = random() % 12;
    for (std::size_t k = 0; k < length; ++k) text += kCharacters[random() % kCharacters.size()];
    std::vector<std::string> icu;
    for_each_unicode_word(text, false, [&](std::string_view term) { icu.emplace_back(term); });
    ASSERT_EQ(terms_of(text), icu) << text;
  }
}

std::vector<std::string> terms_by_icu(std::string_view text, bool fold_diacritics) {
  std::vector<std::string> terms;
  for_each_unicode_word(text, fold_diacritics, [&](std::string_view term) { terms.emplace_back(term); });
  return terms;
}

/// Words of plain letters are split without ICU. Tests each letter by itself, and words of letters with neighbouring
/// codes.
TEST(RetrievalText, PlainLettersAreSplitAsIcuDoes) {
  std::mt19937 random(8);
  std::size_t plain = 0;
  for (std::uint32_t first = 0x80; first < 0x10000; ++first) {
    if (first >= 0xD800 && first < 0xE000) continue;
    plain += plain_letter(static_cast<char16_t>(first)).kind != PlainLetter::Kind::unknown ? 1 : 0;
    const bool fold = first % 2 == 0;
    std::string text;
    append_utf8(text, static_cast<char16_t>(first));
    ASSERT_EQ(terms_of(text, {.fold_diacritics = fold}), terms_by_icu(text, fold)) << "U+" << std::hex << first;
    for (std::size_t length = random() % 6; length > 0; --length) {
      const auto near = static_cast<std::uint32_t>((first & ~0x7FU) + random() % 0x80);
      const std::uint32_t next = random() % 8 == 0 ? U'A' + near % 26 : near;
      append_utf8(text, static_cast<char16_t>(next));
    }
    ASSERT_EQ(terms_of(text, {.fold_diacritics = fold}), terms_by_icu(text, fold)) << text;
  }
  EXPECT_GT(plain, 40'000U) << "Han and Hangul alone are 32,000";
}

TEST(RetrievalText, ATextWithoutTermsHasNone) {
  EXPECT_THAT(terms_of(""), ::testing::IsEmpty());
  EXPECT_THAT(terms_of(" -- \n\t .,—…"), ::testing::IsEmpty());
  EXPECT_THAT(terms_of("\0@[`{/:"s), ::testing::IsEmpty()) << "the neighbours of digits and letters in ASCII";
}

TEST(RetrievalText, LongTermsAreCutBetweenCharacters) {
  EXPECT_THAT(terms_of(std::string(1000, 'x')), ::testing::ElementsAre(std::string(kTermBytesMax, 'x')));
  const std::string odd = std::string(kTermBytesMax - 1, 'x') + "é" + "y";
  EXPECT_THAT(terms_of(odd), ::testing::ElementsAre(std::string(kTermBytesMax - 1, 'x')));
}

struct Utf8Case {
  std::string text;
  std::size_t valid;
};

class RetrievalUtf8 : public ::testing::TestWithParam<Utf8Case> {};

TEST_P(RetrievalUtf8, IsValidUpTo) {
  const auto& [text, valid] = GetParam();
  EXPECT_EQ(valid_utf8_prefix(text), valid);
  EXPECT_EQ(valid_utf8_prefix("eight by" + text), valid + 8) << "behind a whole word of ASCII";
  EXPECT_EQ(valid_utf8_prefix("odd" + text + "more text"), valid == text.size() ? text.size() + 12 : valid + 3);
}

INSTANTIATE_TEST_SUITE_P(Table, RetrievalUtf8,
                         ::testing::Values(Utf8Case{"", 0}, Utf8Case{"plain\0text"s, 10}, Utf8Case{"é", 2},
                                           Utf8Case{"€", 3}, Utf8Case{"😀", 4}, Utf8Case{"\xF4\x8F\xBF\xBF", 4},
                                           Utf8Case{"a\x80", 1}, Utf8Case{"\xC0\xAF", 0}, Utf8Case{"\xC1\xBF", 0},
                                           Utf8Case{"\xE0\x9F\xBF", 0}, Utf8Case{"\xED\xA0\x80", 0},
                                           Utf8Case{"\xF0\x8F\xBF\xBF", 0}, Utf8Case{"\xF4\x90\x80\x80", 0},
                                           Utf8Case{"\xF5\x80\x80\x80", 0}, Utf8Case{"x\xFF", 1}, Utf8Case{"é\xC3", 2},
                                           Utf8Case{"\xE2\x82", 0}, Utf8Case{"\xE2\x28\xA1", 0},
                                           Utf8Case{"\xF0\x9F\x98", 0}, Utf8Case{"\xF0\x9F\x28\x80", 0}));

std::uint64_t hash(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

// Vectors from the reference implementation (xxhsum -H64), one for each branch: stripes, words, half words, bytes.
TEST(RetrievalChecksum, IsXxh64) {
  EXPECT_EQ(hash(""), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(hash("a"), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(hash("abc"), 0x44BC2CF5AD770999ULL);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1ULL);
}

}  // namespace
}  // namespace headrace::operators
