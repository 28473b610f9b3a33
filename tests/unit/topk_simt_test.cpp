#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "headrace/operators/topk.hpp"
#include "tests/unit/thread_group.hpp"

/// The search of a Topk as CUDA runs it: one row per thread, and lists that the threads merge.
namespace headrace::operators {
namespace {

class SearchGroup : public test_groups::ThreadGroup {
 public:
  explicit SearchGroup(const ThreadGroup& group) : ThreadGroup(group) {}
  [[nodiscard]] bool any(bool value) const { return sum(std::uint64_t{value ? 1U : 0U}) > 0; }
  template <class T>
  [[nodiscard]] T load_relaxed(const T& word) const {
    return CpuGroup::load_relaxed(word);
  }
  template <class T>
  void store_relaxed_on_device(T& word, T value) const {
    CpuGroup::store_relaxed_on_device(word, value);
  }
};

void expect_the_hosts_answers(const std::vector<float>& values, const TopkOptions& options, std::uint32_t columns) {
  const serve::Operator op =
      topk({.data = values.data(), .row_count = values.size() / columns, .column_count = columns}, options);
  const serve::LoadedState loaded = op.load(Device::parse("cpu"));
  TopkState state;
  std::memcpy(&state, loaded.bytes.data(), sizeof(state));
  std::vector<float> query(columns);
  op.sample(3, reinterpret_cast<std::byte*>(query.data()));
  std::vector<std::uint32_t> expected(std::size_t{2} * options.k);
  Topk::answer(CpuGroup{}, state, query.data(), expected.data());
  for (const std::uint32_t threads : {1U, 7U, 32U}) {
    for (const std::uint32_t start : {0U, 64U}) {
      *state.cursor = start;
      std::vector<std::uint32_t> answer(expected.size());
      test_groups::run_block(threads, [&](const test_groups::ThreadGroup& group) {
        Topk::answer(SearchGroup(group), state, query.data(), answer.data());
      });
      EXPECT_EQ(answer, expected) << threads << " threads, from row " << start;
    }
  }
}

std::vector<float> fractions(std::size_t count) {
  std::mt19937 random(1);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

TEST(TopkSimt, BlocksOfAnyNumberOfThreadsGiveTheBitsOfTheHost) {
  const std::vector<float> values = fractions(std::size_t{301} * 19);
  expect_the_hosts_answers(values, {.k = 10}, 19);
  expect_the_hosts_answers(values, {.k = 1, .metric = Metric::l2}, 19);
  expect_the_hosts_answers(values, {.k = 256, .element = ElementType::float32}, 19);
}

TEST(TopkSimt, EqualScoresComeByRow) {
  expect_the_hosts_answers(std::vector<float>(std::size_t{200} * 3, 0.5F), {.k = 40}, 3);
}

TEST(TopkSimt, RowsThatGetBetterAndBetterAreAllFound) {
  std::vector<float> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  expect_the_hosts_answers(values, {.k = 5, .metric = Metric::l2}, 1);
  for (float& value : values) value = -value;
  expect_the_hosts_answers(values, {.k = 5, .metric = Metric::l2}, 1);
}

TEST(Topk, KeysOrderScoresAsNumbersAndRowsBehindThem) {
  const std::array<float, 7> ascending{-INFINITY, -2.5F, -1e-40F, 0.0F, 1e-40F, 3.0F, INFINITY};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    EXPECT_LT(detail::topk_key(ascending[i], 9, Metric::l2), detail::topk_key(ascending[i + 1], 0, Metric::l2));
    EXPECT_GT(detail::topk_key(ascending[i], 0, Metric::dot), detail::topk_key(ascending[i + 1], 9, Metric::dot));
  }
  for (const Metric metric : {Metric::dot, Metric::l2}) {
    EXPECT_EQ(detail::topk_key(-0.0F, 4, metric), detail::topk_key(0.0F, 4, metric));
    for (const float score : ascending) {
      EXPECT_LT(detail::topk_key(score, 4, metric), detail::topk_key(score, 5, metric));
      EXPECT_LT(detail::topk_key(score, 4, metric), detail::topk_key(NAN, 0, metric));
      EXPECT_EQ(detail::topk_score(detail::topk_key(score, 4, metric), metric), score);
    }
    EXPECT_TRUE(std::isnan(detail::topk_score(detail::topk_key(-NAN, 4, metric), metric)));
  }
}

}  // namespace
}  // namespace headrace::operators
