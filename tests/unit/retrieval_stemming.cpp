#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "operators/retrieval/brute_force.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/stemming.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

using ::testing::HasSubstr;

class RetrievalStemming : public ::testing::Test {
 protected:
  void SetUp() override {
    if (stem_languages().empty()) GTEST_SKIP() << "built without libstemmer";
  }
};

struct Sample {
  std::string language;
  std::string word;
  std::string stem;
};

/// From the sample vocabularies at https://snowballstem.org/algorithms for each algorithm.
TEST_F(RetrievalStemming, IsThatOfSnowball) {
  const std::vector<Sample> samples{
      {"english", "consigning", "consign"},
      {"english", "knightly", "knight"},
      {"english", "generously", "generous"},
      {"porter", "generously", "gener"},
      {"german", "aufeinanderfolgenden", "aufeinanderfolg"},
      {"french", "continuellement", "continuel"},
      {"spanish", "chicharrones", "chicharron"},
      {"portuguese", "quilométricas", "quilométr"},
      {"italian", "pronunciavano", "pronunc"},
      {"russian", "важнейшими", "важн"},
      {"swedish", "jaktkarlarne", "jaktkarl"},
      {"hungarian", "babakocsijáért", "babakocs"},
  };
  for (const auto& [language, word, stem] : samples) EXPECT_EQ(stem_of(word, language), stem) << word;
}

TEST_F(RetrievalStemming, EveryApostropheIsOne) {
  for (const std::string quote : {"'", "\u2019", "\u2018", "\u201B"}) {
    EXPECT_EQ(stem_of("cat" + quote + "s", "english"), "cat");
  }
  EXPECT_EQ(stem_of("\u2020\u2019", "english"), "\u2020'") << "only whole characters";
}

TEST_F(RetrievalStemming, NoWordIsLost) {
  EXPECT_EQ(stem_of("גע", "yiddish"), "גע");
  for (const std::string& language : stem_languages()) {
    for (const char* const word : {"a", "s", "ed", "ing", "'s", "не", "ίσα", "한", "東京"}) {
      EXPECT_NE(stem_of(word, language), "") << language << ' ' << word;
    }
  }
}

TEST_F(RetrievalStemming, TermsAreCutBeforeAndAfter) {
  Tokenizer tokenizer({.stem = "english"});
  EXPECT_THAT(tokenizer.split("Cats' RUNNING, 東京都 3.14"),
              ::testing::ElementsAre("cat", "run", "東京", "京都", "3.14"));
  const std::string letters(kTermBytesMax - 3, 'x');
  EXPECT_THAT(tokenizer.split(letters + "ingest"), ::testing::ElementsAre(letters + "ing"))
      << "a run of consonants has no stem";
  Tokenizer hungarian({.stem = "hungarian"});
  for (const std::string& term : hungarian.split(std::string(1000, 'y'))) EXPECT_LE(term.size(), kTermBytesMax);
}

TEST_F(RetrievalStemming, QueriesAreStemmedAsDocuments) {
  const std::vector<std::string> documents{"Connected by connections", "the connection", "a cat", "Cats connecting"};
  const TextRules rules{.stem = "english"};
  IndexBuilder builder(rules);
  for (const auto& document : documents) builder.add(document);
  const Index index = Index::from_bytes(builder.build().bytes());
  EXPECT_EQ(index.text_rules(), rules);
  const BruteForce brute(documents, rules);
  for (const char* const query : {"connects", "CONNECTIVE NOT cat", "cat's OR connection", "NOT \"connecting\""}) {
    EXPECT_EQ(index.matches(query).size(), brute.answer(query).hits) << query;
  }
  EXPECT_EQ(index.matches("connects NOT cat"), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_FALSE(index.find("connection"));
  EXPECT_TRUE(index.find("connect"));
}

TEST_F(RetrievalStemming, EachThreadHasItsOwn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      const std::string language = i % 2 == 0 ? "english" : "russian";
      for (int k = 0; k < 2000; ++k) {
        if (stem_of(i % 2 == 0 ? "connections" : "важнейшими", language) != (i % 2 == 0 ? "connect" : "важн")) {
          ADD_FAILURE();
        }
      }
      EXPECT_EQ(stem_fingerprint(language), stem_fingerprint(language));
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(RetrievalStemming, LanguagesHaveFingerprintsOfTheirOwn) {
  std::vector<std::uint64_t> seen;
  for (const std::string& language : stem_languages()) {
    EXPECT_THAT(seen, ::testing::Not(::testing::Contains(stem_fingerprint(language)))) << language;
    seen.push_back(stem_fingerprint(language));
  }
}

TEST_F(RetrievalStemming, UnknownLanguagesAreNamedBesideThoseKnown) {
  const auto error = test::error_of<UsageError>([] { const IndexBuilder builder({.stem = "klingon"}); });
  EXPECT_THAT(error, HasSubstr("stemming: there is no language 'klingon'; the languages are arabic, "));
  EXPECT_THAT(error, HasSubstr(", english, "));
  EXPECT_THROW((void)stem_of("dogs", "en"), UsageError) << "libstemmer accepts it for english";
}

/// Forged files with a valid checksum.
class RetrievalHostileStems : public RetrievalStemming {
 protected:
  RetrievalHostileStems() {
    if (stem_languages().empty()) return;
    IndexBuilder builder({.stem = "english"});
    builder.add("running dogs");
    const Index index = builder.build();
    bytes_.assign(index.bytes().begin(), index.bytes().end());
    std::memcpy(&header_, bytes_.data(), sizeof(header_));
  }

  /// Error message of loading; empty if it succeeds.
  [[nodiscard]] std::string complaint() {
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    seal_index(bytes_);
    try {
      (void)Index::from_bytes(bytes_, "some.idx");
    } catch (const DataError& error) {
      return error.what();
    }
    return {};
  }
  void name(std::string_view text) {
    header_.stem = {};
    std::ranges::copy(text, header_.stem.begin());
  }

  std::vector<std::byte> bytes_;
  IndexHeader header_{};
};

TEST_F(RetrievalHostileStems, AreReadAsTheyWereWritten) { EXPECT_EQ(complaint(), ""); }

TEST_F(RetrievalHostileStems, OfAnotherLibstemmer) {
  header_.stem_fingerprint ^= 1;
  EXPECT_EQ(
      complaint(),
      "some.idx: its words are stemmed (english), but the libstemmer here gives different stems from the one that "
      "built the index; build the index again");
}

TEST_F(RetrievalHostileStems, OfALanguageThatIsNotHere) {
  name("klingon");
  EXPECT_EQ(complaint(), "some.idx: its words are stemmed (klingon), but the libstemmer here has no such language");
  name("abcdefghijklmnop");
  EXPECT_THAT(complaint(), HasSubstr("(abcdefghijklmnop), but")) << "as long as there is room for";
}

TEST_F(RetrievalHostileStems, NamesThatAreNone) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text : {""sv, "eng\033[2J"sv, "English"sv, "english\0\0x"sv, "\0english"sv, "en-us"sv}) {
    name(text);
    EXPECT_EQ(complaint(), "some.idx: corrupt: unknown rules for words");
  }
}

TEST_F(RetrievalHostileStems, VersionsThatHaveNone) {
  header_.version = 3;
  EXPECT_THAT(complaint(), HasSubstr("there is no version 3 with a header of 168 bytes"));
  header_.header_bytes = header_bytes_of(3);
  EXPECT_THAT(complaint(), HasSubstr("corrupt"));
}

TEST_F(RetrievalHostileStems, EveryFlippedBitIsNoticed) {
  const auto whole = bytes_;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    bytes_ = whole;
    bytes_[i] ^= std::byte{4};
    EXPECT_THROW((void)Index::from_bytes(bytes_), DataError) << i;
  }
}

/// Error message of a library without libstemmer; skipped with it.
TEST(RetrievalStemmingAbsent, SaysSo) {
  if (!stem_languages().empty()) GTEST_SKIP() << "built with libstemmer";
  const auto error = test::error_of<UsageError>([] { const IndexBuilder builder({.stem = "english"}); });
  EXPECT_EQ(error, "stemming: Headrace was built without libstemmer (Debian: libstemmer-dev)");
  IndexBuilder builder;
  builder.add("dogs");
  const Index plain = builder.build();
  IndexCounts counts{1, 1, 4, 1};
  IndexHeader header = plan_index(counts, 4);
  header.words = static_cast<std::uint8_t>(TextRules::Words::unicode);
  std::ranges::copy(std::string_view("english"), header.stem.begin());
  IndexHeader before{};
  std::memcpy(&before, plain.bytes().data(), sizeof(before));
  std::vector<std::byte> bytes(header.file_bytes);
  std::memcpy(bytes.data(), &header, header.header_bytes);
  for (std::size_t i = 0; i < kFirstSections; ++i) {
    std::memcpy(bytes.data() + header.section(i).offset, plain.bytes().data() + before.section(i).offset,
                header.section(i).bytes);
  }
  seal_index(bytes);
  EXPECT_EQ(test::error_of<DataError>([&] { (void)Index::from_bytes(bytes, "some.idx"); }),
            "some.idx: its words are stemmed (english), but Headrace was built without libstemmer");
}

}  // namespace
}  // namespace headrace::operators
