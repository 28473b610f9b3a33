#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/brute_force.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "tests/unit/retrieval_support.hpp"
#include "tests/unit/thread_group.hpp"

namespace headrace::operators {
namespace {

using test::Loaded;

std::vector<std::uint32_t> ids_of(const RetrievalAnswer& answer) {
  return {answer.ids, std::find(std::begin(answer.ids), std::end(answer.ids), kNoDocument)};
}

TEST(RetrievalAnswer, CountsAllAndNamesTheFirst) {
  const Loaded loaded{test::build_index(std::vector<std::string>(1000, "same"))};
  const auto answer = loaded.answer(loaded.index.compile("same"));
  EXPECT_EQ(answer.hits, 1000U);
  EXPECT_THAT(answer.ids, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  EXPECT_EQ(loaded.answer(loaded.index.compile("NOT same")).hits, 0U);
  EXPECT_EQ(loaded.answer(loaded.index.compile("NOT other")).hits, 1000U);
}

TEST(RetrievalAnswer, FillsUpWithNoDocument) {
  const Loaded loaded{test::build_index(std::vector<std::string>{"a", "b", "a b", "c"})};
  const auto answer = loaded.answer(loaded.index.compile("a OR b"));
  EXPECT_EQ(answer.hits, 3U);
  EXPECT_THAT(ids_of(answer), ::testing::ElementsAre(0, 1, 2));
  EXPECT_TRUE(std::all_of(answer.ids + 3, std::end(answer.ids), [](auto id) { return id == kNoDocument; }));
}

TEST(RetrievalAnswer, ADocumentInSeveralListsCountsOnce) {
  std::vector<std::string> documents(20'000, "filler");
  for (const std::size_t i : {7U, 70U, 700U}) documents[i] = "x y z";
  documents[35] = "y";
  const Loaded loaded{test::build_index(documents)};
  const auto query = loaded.index.compile("x OR y OR z");
  ASSERT_EQ(query.mode, RetrievalMode::candidates);
  ASSERT_EQ(query.cover_count, 3);
  const auto answer = loaded.answer(query);
  EXPECT_EQ(answer.hits, 4U);
  EXPECT_THAT(ids_of(answer), ::testing::ElementsAre(7, 35, 70, 700));
}

/// Corpora of all shapes: sizes around multiples of 64, and words from everywhere to nowhere.
struct Shape {
  std::uint32_t documents;
  std::uint32_t words;
  double steepness;
};
constexpr Shape kShapes[] = {{1, 3, 0.5},    {2, 5, 0.5},     {63, 8, 0.7},    {64, 8, 0.7},    {65, 8, 0.7},
                             {500, 12, 0.9}, {2048, 14, 0.8}, {2049, 20, 0.6}, {5000, 16, 0.8}, {20'000, 20, 0.7}};

TEST(RetrievalProperty, TheFastPathEqualsBruteForce) {
  std::mt19937_64 random(2026);
  std::size_t with_hits = 0;
  std::array<std::size_t, 3> modes{};
  for (const auto& shape : kShapes) {
    for (int corpus = 0; corpus < (shape.documents < 1000 ? 10 : 1); ++corpus) {
      const auto documents = test::random_corpus(random, shape.documents, shape.words, shape.steepness);
      const BruteForce slow(documents);
      const Loaded loaded{test::build_index(documents)};
      for (int i = 0; i < 100; ++i) {
        const auto text = test::random_query(random, shape.words, 3);
        const auto query = loaded.index.compile(text);
        const auto expected = slow.answer(text);
        ASSERT_EQ(loaded.answer(query), expected) << text << " over " << shape.documents << " documents";
        with_hits += expected.hits != 0 ? 1 : 0;
        ++modes.at(static_cast<std::size_t>(query.mode));
      }
    }
  }
  EXPECT_GT(with_hits, 2000U) << "the queries are too selective to show anything";
  for (const auto count : modes) EXPECT_GT(count, 50U) << "one way of answering was hardly tried";
}

/// How the operator processes a query.
struct Way {
  bool walks;
  std::uint32_t scans;  ///< kTruthTermsMax + 1 if there are more.
  auto operator<=>(const Way&) const = default;
};

TEST(RetrievalProperty, EveryWayOfAnsweringEqualsBruteForce) {
  // 60,000 documents: w0 is in every second one, w<k> in one of 2^(k + 1), so rare words have no bitmap.
  constexpr std::uint32_t kDocuments = 60'000;
  constexpr std::uint32_t kWords = 14;
  std::mt19937_64 random(99);
  std::vector<std::string> documents(kDocuments);
  for (auto& document : documents) {
    for (std::uint32_t word = 0; word < kWords; ++word) {
      if (random() >> (63 - word) == 0) document += fmt::format("w{} ", word);
    }
  }
  const BruteForce slow(documents);
  const Loaded loaded{test::build_index(documents)};
  std::map<Way, int> ways;
  for (int i = 0; i < 160; ++i) {
    std::string text = test::random_query(random, kWords, 3);
    if (i % 4 == 0) text = "w0 OR w1 OR w2 OR w3 OR w4 AND NOT w5 OR " + text;
    if (i % 4 == 1) text = fmt::format("w{} OR w{} OR w{}", random() % 4, 4 + random() % 4, 8 + random() % 6);
    const auto query = loaded.index.compile(text);
    ASSERT_EQ(loaded.answer(query), slow.answer(text)) << text;
    if (query.mode != RetrievalMode::scan) continue;
    ++ways[{query.cover_count != 0, std::min<std::uint32_t>(query.scan_count, kTruthTermsMax + 1)}];
  }
  for (const bool walks : {false, true}) {
    for (std::uint32_t scans = 1; scans <= kTruthTermsMax + 1; ++scans) {
      EXPECT_GE((ways[{walks, scans}]), 1) << "never scanned " << scans << (walks ? " with" : " without") << " a walk";
    }
  }
}

TEST(RetrievalProperty, QueriesOfAsManyTermsAsThereMayBeEqualBruteForce) {
  std::mt19937_64 random(64);
  std::map<bool, int> many_scanned;
  std::uint32_t most_walked = 0;
  for (const double steepness : {0.02, 0.1, 0.25, 20.0}) {
    auto documents = test::random_corpus(random, 3'000, 2 * kQueryTermsMax, steepness);
    for (std::uint32_t word = 0; word < 2 * kQueryTermsMax; ++word) {  // rare ones have no bitmap: they are walked
      documents[random() % documents.size()] += fmt::format("w{} ", word);
    }
    const BruteForce slow(documents);
    const Loaded loaded{test::build_index(documents)};
    std::string each;
    for (std::uint32_t i = 0; i < kQueryTermsMax; ++i)
      each += fmt::format("{}w{}", i == 0 ? "" : " OR ", 2 * kQueryTermsMax - 1 - i);
    std::vector<std::string> texts{each, "NOT (" + each + ")"};
    for (int i = 0; i < 100; ++i) {
      const auto count = static_cast<std::uint32_t>(17 + random() % (kQueryTermsMax - 16));
      texts.push_back(test::long_query(random, 2 * kQueryTermsMax, count));
    }
    for (const auto& text : texts) {
      const auto query = loaded.index.compile(text);
      ASSERT_EQ(loaded.answer(query), slow.answer(text)) << text;
      ++many_scanned[query.mode == RetrievalMode::scan && query.scan_count > 16];
      most_walked = std::max<std::uint32_t>(most_walked, query.cover_count);
    }
  }
  EXPECT_GE(many_scanned[true], 1) << "no rest had more than 16 terms";
  EXPECT_EQ(most_walked, kQueryTermsMax);
}

TEST(RetrievalProperty, MatchesThatTheCoverTakesAwayAreNotListed) {
  // The first 300 documents with "often" also have "seldom", so the operator must search far into the bitmap for ids.
  std::vector<std::string> documents(400'000, "x");
  for (std::size_t i = 0; i < documents.size(); i += 2) documents[i] = "often";
  for (std::size_t i = 0; i < 600; i += 2) documents[i] = "often seldom";
  const Loaded loaded{test::build_index(documents)};
  const auto query = loaded.index.compile("often AND NOT seldom");
  ASSERT_EQ(query.mode, RetrievalMode::scan);
  ASSERT_EQ(query.cover_count, 1);
  ASSERT_EQ(query.scan_count, 1);
  const auto answer = loaded.answer(query);
  EXPECT_EQ(answer.hits, 200'000U - 300U);
  EXPECT_EQ(answer.ids[0], 600U);
  EXPECT_EQ(answer.ids[14], 628U);
  const auto neither = loaded.answer(loaded.index.compile("NOT seldom"));
  EXPECT_EQ(neither.hits, 400'000U - 300U);
  EXPECT_EQ(neither.ids[0], 1U);
  EXPECT_EQ(neither.ids[14], 29U);
}

TEST(RetrievalProperty, EveryQueryOfThreeWordsIsRight) {
  // One document for each set of words: the answer is the truth table.
  std::vector<std::string> documents;
  for (int set = 0; set < 8; ++set) {
    documents.push_back(std::string(set & 1 ? "a " : "") + (set & 2 ? "b " : "") + (set & 4 ? "c" : ""));
  }
  const Loaded loaded{test::build_index(documents)};
  const auto hits = [&](std::string_view text) { return ids_of(loaded.answer(loaded.index.compile(text))); };
  using ::testing::ElementsAre;
  EXPECT_THAT(hits("a"), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(hits("a b"), ElementsAre(3, 7));
  EXPECT_THAT(hits("a OR b AND c"), ElementsAre(1, 3, 5, 6, 7));
  EXPECT_THAT(hits("(a OR b) AND c"), ElementsAre(5, 6, 7));
  EXPECT_THAT(hits("NOT a AND NOT b"), ElementsAre(0, 4));
  EXPECT_THAT(hits("NOT (a AND b) c"), ElementsAre(4, 5, 6));
  EXPECT_THAT(hits("a AND NOT a"), ElementsAre());
  EXPECT_THAT(hits("a OR NOT a"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RetrievalProperty, BlocksOfAnySizeGiveTheSameAnswer) {
  std::mt19937_64 random(7);
  const auto documents = test::random_corpus(random, 9000, 16, 0.8);
  const Loaded loaded{test::build_index(documents)};
  std::vector<RetrievalQuery> queries;
  std::vector<RetrievalAnswer> expected;
  for (int i = 0; i < 60; ++i) {
    queries.push_back(loaded.index.compile(test::random_query(random, 16, 3)));
    expected.push_back(loaded.answer(queries.back()));
  }
  for (const std::uint32_t threads : {1U, 2U, 3U, 8U}) {
    std::vector<RetrievalAnswer> answers(queries.size());
    test_groups::run_block(threads, [&](test_groups::ThreadGroup group) {
      for (std::size_t i = 0; i < queries.size(); ++i) {
        Retrieval::answer(group, loaded.postings, &queries[i], &answers[i]);
      }
    });
    for (std::size_t i = 0; i < queries.size(); ++i) EXPECT_EQ(answers[i], expected[i]) << threads << ", query " << i;
  }
}

TEST(RetrievalProperty, NoBytesWhateverMakeItReadOutside) {
  std::mt19937_64 random(13);
  const auto documents = test::random_corpus(random, 700, 12, 0.9);
  const Loaded loaded{test::build_index(documents)};
  for (int i = 0; i < 20'000; ++i) {
    RetrievalQuery query;
    if (i % 2 == 0) {
      for (auto* at = reinterpret_cast<unsigned char*>(&query); at != reinterpret_cast<unsigned char*>(&query + 1);
           ++at)
        *at = static_cast<unsigned char>(random() % (i % 4 == 0 ? 256 : kQueryLeavesMax + 4));
    } else {
      query = loaded.index.compile(test::random_query(random, 12, 3));
      reinterpret_cast<unsigned char*>(&query)[random() % sizeof(query)] = static_cast<unsigned char>(random());
    }
    const auto answer = loaded.answer(query);  // the sanitizers watch
    for (const auto id : ids_of(answer)) ASSERT_LT(id, 700U);
  }
}

TEST(RetrievalSampler, TextAndQueryAreTheSameAndReproducible) {
  std::mt19937_64 random(5);
  const auto documents = test::random_corpus(random, 3000, 16, 0.5);
  const auto index = std::make_shared<const Index>(test::build_index(documents));
  const RetrievalSampler sampler(index);
  const RetrievalSampler again(index);
  std::array<int, 4> forms{};
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto text = sampler.text(i);
    auto query = sampler.query(i);
    EXPECT_EQ(query, again.query(i));
    EXPECT_EQ(query.tag, i + 1);
    query.tag = 0;
    ASSERT_EQ(query, index->compile(text)) << text;
    const bool either = text.find(" OR ") != std::string::npos;
    if (text[0] == '(') {
      ++forms[3];
    } else if (text.find("NOT") != std::string::npos) {
      ++forms[2];
    } else {
      ++forms[either ? 1 : 0];
    }
  }
  EXPECT_NEAR(forms[0], 1000, 150);
  EXPECT_NEAR(forms[1], 400, 100);
  EXPECT_NEAR(forms[2] + forms[3], 600, 120);
  EXPECT_GT(forms[3], 100);
}

TEST(RetrievalSampler, LeavesOutTheWordsOfTheLanguage) {
  const std::vector<std::string> documents{"salt and pepper or not", "and or not"};
  const RetrievalSampler sampler(std::make_shared<const Index>(test::build_index(documents)));
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto text = sampler.text(i);
    EXPECT_THAT(text, ::testing::HasSubstr("salt"));
    EXPECT_THAT(text, ::testing::HasSubstr("pepper"));
  }
}

TEST(RetrievalSampler, HasAnAnswerForCorporaWithoutTerms) {
  const Loaded loaded{test::build_index(std::vector<std::string>{"", "..."})};
  const RetrievalSampler sampler(std::make_shared<const Index>(loaded.index));
  EXPECT_EQ(loaded.answer(sampler.query(3)).hits, 0U);
  EXPECT_EQ(loaded.answer(loaded.index.compile(sampler.text(3))).hits, 0U);
  EXPECT_NE(sampler.query(3), sampler.query(4));
}

TEST(BruteForce, AnswersFromTheDocumentsThemselves) {
  const std::vector<std::string> documents{"Red fish", "blue FISH", "red herring"};
  const auto answer = reference_answer(documents, "red AND NOT herring OR blue");
  EXPECT_EQ(answer.hits, 2U);
  EXPECT_THAT(ids_of(answer), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(reference_answer(documents, "unicorn").hits, 0U);
  EXPECT_THROW(static_cast<void>(reference_answer(documents, "red AND")), UsageError);
  EXPECT_THROW(static_cast<void>(reference_answer(std::vector<std::string>{"\xFF"}, "red")), DataError);
}

}  // namespace
}  // namespace headrace::operators
