#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/id_set.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

/// Tries every set of ids as it is, and as its complement.
std::vector<std::uint32_t> members(const std::set<std::uint32_t>& ids, bool all_but, std::uint32_t documents) {
  std::vector<std::uint32_t> there;
  for (std::uint32_t id = 0; id < documents; ++id) {
    if (ids.contains(id) != all_but) there.push_back(id);
  }
  return there;
}

TEST(RetrievalIdSet, CombinesAndCutsAsSetsDo) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    const auto documents = static_cast<std::uint32_t>(1 + random() % 400);
    std::vector<std::uint32_t> lists[2];
    IdSet sets[2];
    std::set<std::uint32_t> expected[2];
    for (int side = 0; side < 2; ++side) {
      const std::uint64_t share = std::uint64_t{1} << random() % 9;
      for (std::uint32_t id = 0; id < documents; ++id) {
        if (random() % share == 0) lists[side].push_back(id);
      }
      sets[side] = IdSet::borrowed(lists[side]);
      const bool all_but = random() % 2 == 0;
      if (all_but) sets[side] = std::move(sets[side]).complement();
      const auto there = members({lists[side].begin(), lists[side].end()}, all_but, documents);
      expected[side] = {there.begin(), there.end()};
    }
    std::vector<std::uint32_t> both;
    std::vector<std::uint32_t> either;
    std::ranges::set_intersection(expected[0], expected[1], std::back_inserter(both));
    std::ranges::set_union(expected[0], expected[1], std::back_inserter(either));
    const IdSet found_both = sets[0] & sets[1];
    const IdSet found_either = sets[0] | sets[1];
    EXPECT_EQ(found_both.count(documents), both.size());
    EXPECT_EQ(found_both.page(documents, 0, kAll), both);
    EXPECT_EQ(found_either.count(documents), either.size());
    EXPECT_EQ(found_either.page(documents, 0, kAll), either);
    const std::uint64_t offset = random() % (documents + 2);
    const std::uint64_t limit = random() % 20;
    const auto begin = either.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, either.size()));
    const auto left = static_cast<std::uint64_t>(either.end() - begin);
    const std::vector<std::uint32_t> page(begin, begin + static_cast<std::ptrdiff_t>(std::min(limit, left)));
    EXPECT_EQ(found_either.page(documents, offset, limit), page) << offset << " " << limit;
  }
}

TEST(RetrievalIdSet, GallopFindsTheFirstThatIsNotBelow) {
  const std::vector<std::uint32_t> ids{2, 3, 5, 8, 13, 21, 34, 55};
  for (std::size_t from = 0; from <= ids.size(); ++from) {
    for (std::uint32_t id = 0; id < 60; ++id) {
      std::size_t expected = from;
      while (expected < ids.size() && ids[expected] < id) ++expected;
      EXPECT_EQ(gallop(ids, from, id), expected) << from << " " << id;
    }
  }
}

TEST(RetrievalPages, TogetherAreAllMatches) {
  std::mt19937_64 random(11);
  const auto corpus = test::random_corpus(random, 3'000, 12, 0.8);
  const Index index = test::build_index(corpus);
  for (int i = 0; i < 60; ++i) {
    const std::string text = test::random_query(random, 12, 3);
    const auto all = index.matches(text);
    std::vector<std::uint32_t> joined;
    const std::uint64_t limit = 1 + random() % 700;
    for (std::uint64_t offset = 0; offset <= all.size(); offset += limit) {
      const MatchPage page = index.page(text, {offset, limit});
      EXPECT_EQ(page.hits, all.size()) << text;
      joined.insert(joined.end(), page.ids.begin(), page.ids.end());
    }
    EXPECT_EQ(joined, all) << text;
    EXPECT_THAT(index.page(text, {all.size(), 10}).ids, IsEmpty());
    EXPECT_THAT(index.page(text, {kAll, kAll}).ids, IsEmpty());
  }
}

TEST(RetrievalFrequencies, AreKeptWhereTheyAreAskedFor) {
  const std::vector<std::string> documents{"to be or not to be", "", "Be bee BE", "not"};
  const Index plain = test::build_index(documents, IndexContents::documents);
  EXPECT_FALSE(plain.has_frequencies());
  const Index built = test::build_index(documents, IndexContents::frequencies);
  for (const Index& index : {built, Index::from_bytes(built.bytes())}) {
    ASSERT_TRUE(index.has_frequencies());
    EXPECT_THAT(index.lengths(), ElementsAre(6, 0, 3, 1));
    EXPECT_EQ(index.mean_length(), 2.5);
    EXPECT_THAT(index.postings(*index.find("be")), ElementsAre(0, 2));
    EXPECT_THAT(index.frequencies(*index.find("be")), ElementsAre(2, 2));
    EXPECT_THAT(index.frequencies(*index.find("not")), ElementsAre(1, 1));
    EXPECT_THAT(index.frequencies(*index.find("bee")), ElementsAre(1));
  }
}

TEST(RetrievalFrequencies, EndAt65535) {
  std::string text;
  for (int i = 0; i < 65'540; ++i) text += "a ";
  const Index index = test::build_index({text, "a b"}, IndexContents::frequencies);
  EXPECT_THAT(index.frequencies(*index.find("a")), ElementsAre(65'535, 1));
  EXPECT_THAT(index.lengths(), ElementsAre(65'540, 2));
  static_cast<void>(Index::from_bytes(index.bytes()));  // which the reader accepts
}

/// BM25 computed from the text by the formula, without an index.
class PlainBm25 {
 public:
  explicit PlainBm25(const std::vector<std::string>& documents) {
    for (const auto& document : documents) {
      std::istringstream words(document);
      auto& counts = counts_.emplace_back();
      double& length = lengths_.emplace_back(0);
      for (std::string word; words >> word; ++length) ++counts[word];
      mean_ += length / static_cast<double>(documents.size());
      for (const auto& [word, count] : counts) ++with_[word];
    }
  }

  [[nodiscard]] double score(std::size_t id, const std::vector<std::string>& words, const Bm25& bm25) const {
    double score = 0;
    for (const auto& word : words) {
      const auto found = counts_[id].find(word);
      if (found == counts_[id].end()) continue;
      const double with = with_.at(word);
      const double weight = std::log(1 + (static_cast<double>(counts_.size()) - with + 0.5) / (with + 0.5));
      const double norm = bm25.k1 * (1 - bm25.b + bm25.b * lengths_[id] / mean_);
      score += weight * found->second * (bm25.k1 + 1) / (found->second + norm);
    }
    return score;
  }

 private:
  std::vector<std::map<std::string, int>> counts_;
  std::vector<double> lengths_;
  std::map<std::string, int> with_;
  double mean_ = 0;
};

/// Documents of up to 60 words, some of which occur many times.
std::vector<std::string> repeating_corpus(std::mt19937_64& random, std::size_t documents) {
  std::vector<std::string> corpus(documents);
  for (auto& document : corpus) {
    for (auto words = random() % 60; words > 0; --words)
      document += fmt::format("w{} ", random() % (1 + random() % 40));
  }
  return corpus;
}

TEST(RetrievalRanking, IsBm25OfTheTermsThatAreWanted) {
  std::mt19937_64 random(3);
  const auto corpus = repeating_corpus(random, 700);
  const Index index = test::build_index(corpus, IndexContents::frequencies);
  const PlainBm25 plain(corpus);
  const std::vector<std::pair<std::string, std::vector<std::string>>> queries{
      {"w3", {"w3"}},
      {"w1 OR w30 OR w39", {"w1", "w30", "w39"}},
      {"w2 AND NOT w5", {"w2"}},
      {"w2 w2 w7", {"w2", "w7"}},
      {"NOT (w1 OR NOT w4)", {"w4"}},
      {"NOT w0", {}},
      {"w6 AND (w9 OR unknown)", {"w6", "w9"}},
  };
  for (const auto& [text, words] : queries) {
    for (const Bm25 bm25 : {Bm25{}, Bm25{0, 0.5}, Bm25{2, 0}, Bm25{0.9, 1}}) {
      const auto matches = index.matches(text);
      const RankedPage all = index.rank(text, {0, kAll}, bm25);
      ASSERT_EQ(all.hits, matches.size()) << text;
      ASSERT_EQ(all.documents.size(), matches.size()) << text;
      std::vector<std::uint32_t> ids;
      for (std::size_t i = 0; i < all.documents.size(); ++i) {
        const auto [id, score] = all.documents[i];
        ids.push_back(id);
        EXPECT_NEAR(score, plain.score(id, words, bm25), 1e-12) << text << " " << id;
        if (i == 0) continue;
        const auto before = all.documents[i - 1];
        EXPECT_TRUE(before.score > score || (before.score == score && before.id < id)) << text << " place " << i;
      }
      std::ranges::sort(ids);
      EXPECT_EQ(ids, matches) << text;
      const RankedPage page = index.rank(text, {5, 7}, bm25);
      ASSERT_EQ(page.documents.size(), std::min<std::size_t>(7, matches.size() - 5));
      EXPECT_TRUE(std::ranges::equal(page.documents, std::span(all.documents).subspan(5, page.documents.size())));
    }
  }
}

TEST(RetrievalRanking, RefusesWhatItCannotDo) {
  const Index plain = test::build_index({"apple"}, IndexContents::documents);
  EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(plain.rank("apple")); }), HasSubstr("--frequencies"));
  const Index index = test::build_index({"apple", ""}, IndexContents::frequencies);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Bm25 wrong : {Bm25{-1, 0.5}, Bm25{nan, 0.5}, Bm25{HUGE_VAL, 0.5}}) {
    EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(index.rank("apple", {}, wrong)); }), HasSubstr("k1"));
  }
  for (const Bm25 wrong : {Bm25{1, -0.1}, Bm25{1, 1.1}, Bm25{1, nan}}) {
    EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(index.rank("apple", {}, wrong)); }), HasSubstr("b must"));
  }
  EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(index.rank("apple AND")); }), HasSubstr("position"));
}

TEST(RetrievalRanking, DocumentsWithoutTermsHaveNoScore) {
  const Index empty = test::build_index({"", "..."}, IndexContents::frequencies);
  const RankedPage page = empty.rank("NOT apple");
  ASSERT_EQ(page.documents.size(), 2U);
  EXPECT_EQ(page.documents[0].score, 0);
  EXPECT_EQ(page.hits, 2U);
}

}  // namespace
}  // namespace headrace::operators
