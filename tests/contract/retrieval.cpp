#include "headrace/operators/retrieval.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "operators/retrieval/brute_force.hpp"
#include "operators/retrieval/synthetic.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device device : Device::list()) names.push_back(device.name());
  return names;
}

/// Examples that every device must answer alike: a corpus with terms of all densities, queries, and the answers of
/// brute force.
struct Examples {
  static constexpr std::uint32_t kDocuments = 6000;
  static constexpr std::uint32_t kWords = 18;

  std::shared_ptr<const Index> index;
  std::vector<std::string> texts;
  std::vector<RetrievalQuery> queries;
  std::vector<RetrievalAnswer> answers;

  Examples() {
    std::mt19937_64 random(11);
    const auto documents = test::random_corpus(random, kDocuments, kWords, 0.7);
    const BruteForce slow(documents);
    index = std::make_shared<const Index>(test::build_index(documents));
    const RetrievalSampler sampler(index);
    for (std::uint64_t i = 0; i < 400; ++i) {
      texts.push_back(i % 2 == 0 ? sampler.text(i) : test::random_query(random, kWords, 3));
      if (i % 20 == 1) texts.back() = test::long_query(random, kWords, kQueryLeavesMax);
      queries.push_back(index->compile(texts.back()));
      answers.push_back(slow.answer(texts.back()));
    }
  }
};

const Examples& examples() {
  static const Examples instance;
  return instance;
}

class RetrievalOnDevice : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = Device::parse(GetParam());
};

/// Answers the queries in one launch, one work item for each query.
std::vector<RetrievalAnswer> run(Device device, const serve::Operator& op, const serve::LoadedState& state,
                                 const std::vector<RetrievalQuery>& queries) {
  const Stream stream(device);
  const std::size_t query_bytes = queries.size() * sizeof(RetrievalQuery);
  const std::size_t answer_bytes = queries.size() * sizeof(RetrievalAnswer);
  const Buffer to_answer(device, MemoryKind::device, query_bytes);
  const Buffer answered(device, MemoryKind::device, answer_bytes);
  std::vector<RetrievalAnswer> answers(queries.size());
  stream.copy(to_answer.data(), queries.data(), query_bytes).or_throw("copying queries");
  serve::answer(stream, op, state, to_answer.data(), answered.data(), static_cast<std::uint32_t>(queries.size()),
                sizeof(RetrievalQuery), sizeof(RetrievalAnswer))
      .or_throw("answering");
  stream.copy(answers.data(), answered.data(), answer_bytes).or_throw("copying answers");
  stream.wait().or_throw("waiting for answers");
  return answers;
}

TEST_P(RetrievalOnDevice, AnswersAsBruteForceDoesWithBlocksOfAnySize) {
  const auto& expected = examples();
  for (const std::uint32_t threads : {32U, 128U, 256U, 1024U}) {
    const auto op = retrieval(expected.index, {.threads = threads, .sample = false});
    const auto answers = run(device_, op, op.load(device_), expected.queries);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_EQ(answers[i], expected.answers[i]) << expected.texts[i] << " with " << threads << " threads";
    }
  }
}

TEST_P(RetrievalOnDevice, SurvivesQueriesThatNobodyCompiled) {
  const auto op = retrieval(examples().index, {.sample = false});
  const auto state = op.load(device_);
  std::mt19937_64 random(3);
  std::vector<RetrievalQuery> queries(500);
  for (auto& query : queries) {
    std::array<unsigned char, sizeof(RetrievalQuery)> bytes;
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random() % 40);
    std::memcpy(&query, bytes.data(), sizeof(query));
  }
  static_cast<void>(run(device_, op, state, queries));
  EXPECT_EQ(run(device_, op, state, examples().queries), examples().answers)
      << "the device no longer answers as before";
}

TEST_P(RetrievalOnDevice, SamplesAreAnsweredAsTheirTextsSay) {
  const auto& expected = examples();
  const auto op = retrieval(expected.index);
  std::vector<RetrievalQuery> queries(200);
  for (std::size_t i = 0; i < queries.size(); ++i) op.sample(2 * i, reinterpret_cast<std::byte*>(&queries[i]));
  const auto answers = run(device_, op, op.load(device_), queries);
  for (std::size_t i = 0; i < queries.size(); ++i)
    EXPECT_EQ(answers[i], expected.answers[2 * i]) << expected.texts[2 * i];
}

TEST_P(RetrievalOnDevice, TheStateOutlivesTheOperatorAndTheIndex) {
  serve::LoadedState state;
  {
    auto index = std::make_shared<const Index>(Index::from_bytes(examples().index->bytes()));
    state = retrieval(std::move(index), {.sample = false}).load(device_);
  }
  const auto op = retrieval(examples().index, {.sample = false});
  EXPECT_EQ(run(device_, op, state, examples().queries), examples().answers);
}

TEST_P(RetrievalOnDevice, AnswersOverManyDocumentsAsOneThreadDoes) {
  // The index has lists without a bitmap, bitmaps of many rounds, covers, and rests of 0 to 5 terms.
  const auto index = std::make_shared<const Index>(synthetic_index({.documents = 300'000, .terms = 20'000}));
  const RetrievalSampler sampler(index);
  const test::Loaded loaded{*index};
  std::vector<RetrievalQuery> queries;
  for (std::uint64_t i = 0; i < 400; ++i) queries.push_back(sampler.query(i));
  for (const auto* text : {"w00001 OR w00002 OR w00003 OR w00004 OR w00005 OR w00006 OR w09999", "NOT w09999",
                           "NOT w00001", "w00001 AND NOT w00300", "NOT (w00001 OR w00002 OR w12345)",
                           "(w00001 OR w00002) AND (w00003 OR w00004) AND NOT w00005 AND w00006 OR w10001"}) {
    queries.push_back(index->compile(text));
  }
  for (const std::uint32_t threads : {32U, 128U, 512U, 1024U}) {
    const auto op = retrieval(index, {.threads = threads, .sample = false});
    const auto answers = run(device_, op, op.load(device_), queries);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_EQ(answers[i], loaded.answer(queries[i])) << "query " << i << " with " << threads << " threads";
    }
  }
}

TEST_P(RetrievalOnDevice, AnIndexWithoutTermsLoads) {
  const auto index = std::make_shared<const Index>(test::build_index(std::vector<std::string>{"", ""}));
  const auto op = retrieval(index);
  const auto answers = run(device_, op, op.load(device_), {index->compile("x"), index->compile("NOT x")});
  EXPECT_EQ(answers[0].hits, 0U);
  EXPECT_EQ(answers[1].hits, 2U);
}

TEST(RetrievalOperator, NamesTheOptionThatIsOutOfRange) {
  for (const std::uint32_t threads : {0U, 31U, 1025U}) {
    EXPECT_EQ(test::error_of<UsageError>([&] { static_cast<void>(retrieval(examples().index, {.threads = threads})); }),
              fmt::format("retrieval: threads must be 32 to 1024, not {}", threads));
  }
  EXPECT_THROW(static_cast<void>(retrieval(nullptr)), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Devices, RetrievalOnDevice, ::testing::ValuesIn(device_names()), [](const auto& device) {
  std::string name = device.param;
  for (char& c : name) c = c == ':' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace headrace::operators
