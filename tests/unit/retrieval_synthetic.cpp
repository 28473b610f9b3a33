#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/retrieval.hpp"
#include "operators/retrieval/synthetic.hpp"
#include "operators/retrieval/synthetic_documents.hpp"
#include "operators/zipf.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

/// The chi-square bound that a correct sampler exceeds once in a million times: Wilson and Hilferty's approximation
/// (1931).
double chi_square_bound(double freedom) {
  constexpr double kDeviations = 4.75;
  const double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + kDeviations * std::sqrt(spread), 3);
}

double chi_square(const std::vector<double>& expected, const std::vector<std::uint64_t>& observed) {
  double sum = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = static_cast<double>(observed[i]) - expected[i];
    sum += off * off / expected[i];
  }
  return sum;
}

class Zipf : public ::testing::TestWithParam<double> {};

TEST_P(Zipf, ComesWithItsProbabilities) {
  constexpr std::uint32_t kRanks = 200;
  constexpr std::uint64_t kDraws = 400'000;
  std::vector<double> expected(kRanks);
  for (std::uint32_t i = 0; i < kRanks; ++i) expected[i] = std::pow(i + 1, -GetParam());
  const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
  for (auto& value : expected) value *= kDraws / total;
  const ZipfLaw law(kRanks, GetParam());
  std::uint64_t state = 42;
  std::vector<std::uint64_t> observed(kRanks);
  for (std::uint64_t i = 0; i < kDraws; ++i) ++observed.at(law.draw(state) - 1);
  while (expected.size() > 1 && expected.back() < 5) {  // too few for the approximation
    expected[expected.size() - 2] += expected.back();
    observed[observed.size() - 2] += observed.back();
    expected.pop_back();
    observed.pop_back();
  }
  EXPECT_LT(chi_square(expected, observed), chi_square_bound(static_cast<double>(expected.size() - 1)));
  if (GetParam() > 0) {  // the test also detects a wrong exponent
    std::vector<std::uint64_t> wrong(kRanks);
    const ZipfLaw other(kRanks, GetParam() * 1.05);
    for (std::uint64_t i = 0; i < kDraws; ++i) ++wrong[std::min<std::size_t>(other.draw(state), expected.size()) - 1];
    wrong.resize(expected.size());
    EXPECT_GT(chi_square(expected, wrong), chi_square_bound(static_cast<double>(expected.size() - 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Exponents, Zipf, ::testing::Values(0.0, 0.5, 0.999999999, 1.0, 1.2, 3.0));

TEST(ZipfLaw, OfOneRankIsThatRank) {
  const ZipfLaw law(1, 1);
  std::uint64_t state = 0;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(law.draw(state), 1U);
}

SyntheticCorpus small() { return {.documents = 40'000, .terms = 3000, .length = 10, .exponent = 1, .seed = 7}; }

TEST(Synthetic, IsTheSameForAnyNumberOfThreads) {
  const Index one = synthetic_index(small(), {.threads = 1});
  for (const std::uint32_t threads : {0U, 2U, 3U, 7U}) {
    const Index other = synthetic_index(small(), {.threads = threads});
    EXPECT_TRUE(std::ranges::equal(one.bytes(), other.bytes())) << threads;
  }
  auto corpus = small();
  corpus.seed = 8;
  EXPECT_FALSE(std::ranges::equal(one.bytes(), synthetic_index(corpus).bytes()));
}

TEST(Synthetic, HoldsJustItsDocuments) {
  auto corpus = small();
  corpus.documents = 20'000;
  const Index index = synthetic_index(corpus);
  const SyntheticDocuments documents(corpus);
  std::uint64_t postings = 0;
  std::vector<std::uint32_t> words;
  for (std::uint32_t id = 0; id < corpus.documents; ++id) {
    documents.words(id, words);
    ASSERT_GE(words.size(), 2U);
    ASSERT_TRUE(std::is_sorted(words.begin(), words.end()));
    postings += words.size();
    if (id % 97 != 0) continue;
    for (const std::uint32_t word : words) {
      const auto term = index.find(fmt::format("w{:04}", word));
      ASSERT_TRUE(term.has_value()) << word;
      EXPECT_TRUE(std::ranges::binary_search(index.postings(*term), id));
    }
  }
  EXPECT_EQ(index.posting_count(), postings);
  EXPECT_EQ(index.document_count(), corpus.documents);
}

TEST(Synthetic, TermsAreInAsManyDocumentsAsZipfAndPoissonSay) {
  const auto corpus = small();
  const Index index = synthetic_index(corpus);
  double total = 0;
  for (std::uint32_t k = 1; k <= corpus.terms; ++k) total += 1.0 / k;
  std::vector<double> expected;
  std::vector<std::uint64_t> observed;
  for (std::uint32_t k = 2; k <= 400; ++k) {
    // None of 2 + Poisson(8) words is this one: (1 - p)^2 e^(-8p). The few documents whose words are all the same
    // change less than one in a thousand, mostly for the first word, which is left out.
    const double p = 1 / (k * total);
    const double share = 1 - (1 - p) * (1 - p) * std::exp(-(corpus.length - 2) * p);
    const double mean = corpus.documents * share;
    const auto with = static_cast<double>(index.postings(index.find(fmt::format("w{:04}", k)).value()).size());
    EXPECT_NEAR(with, mean, 6 * std::sqrt(mean * (1 - share)) + 0.002 * mean) << k;
    expected.push_back(mean * (1 - share));  // the variance
    observed.push_back(static_cast<std::uint64_t>(std::max(0.0, std::round(expected.back() + with - mean))));
  }
  EXPECT_LT(chi_square(expected, observed), chi_square_bound(static_cast<double>(expected.size())));
}

TEST(Synthetic, SmallAndOddCorporaWork) {
  const Index two = synthetic_index({.documents = 1, .terms = 2, .length = 2, .exponent = 4});
  EXPECT_EQ(two.posting_count(), 2U) << "a document has two different terms, however rare one is";
  const Index many = synthetic_index({.documents = 3, .terms = 5000, .length = 500, .exponent = 0});
  EXPECT_GT(many.posting_count(), 1000U);
  EXPECT_LT(many.term_count(), 5000U) << "words in no document are not in the index";
  const RetrievalSampler sampler(std::make_shared<const Index>(many));
  EXPECT_GT(many.compile(sampler.text(1)).term_count, 0);
}

TEST(Synthetic, NamesWhatIsOutOfRange) {
  const auto error = [](SyntheticCorpus corpus) {
    return test::error_of<UsageError>([&] { static_cast<void>(synthetic_index(corpus)); });
  };
  EXPECT_EQ(error({.documents = 0}), "synthetic corpus: documents must be 1 to 4294967294, not 0");
  EXPECT_EQ(error({.documents = kNoDocument}), "synthetic corpus: documents must be 1 to 4294967294, not 4294967295");
  EXPECT_EQ(error({.terms = 1}), "synthetic corpus: terms must be 2 to 1073741824, not 1");
  EXPECT_EQ(error({.length = 1.5}), "synthetic corpus: length must be 2 to 500, not 1.5");
  EXPECT_EQ(error({.length = std::nan("")}), "synthetic corpus: length must be 2 to 500, not nan");
  EXPECT_EQ(error({.exponent = -1}), "synthetic corpus: exponent must be 0 to 4, not -1");
}

TEST(Synthetic, RefusesWhatMemoryCannotHold) {
  const auto says = test::error_of<SystemError>(
      [] { static_cast<void>(synthetic_index({.documents = 4'000'000'000, .length = 500})); });
  EXPECT_THAT(says, ::testing::HasSubstr("takes 74"));
  EXPECT_THAT(says, ::testing::HasSubstr("are available"));
}

TEST(Synthetic, StopsWhenAsked) {
  std::stop_source stop;
  double last = -1;
  const auto progress = [&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    if (share > 0.3) stop.request_stop();
  };
  try {
    static_cast<void>(synthetic_index(small(), {.threads = 1, .stop = stop.get_token(), .progress = progress}));
    ADD_FAILURE() << "it went on";
  } catch (const Exception& stopped) {
    EXPECT_EQ(stopped.code(), Errc::cancelled);
  }
  EXPECT_LT(last, 0.9);
}

}  // namespace
}  // namespace headrace::operators
