#include "headrace/operators/topk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/serve/detail/rungs.hpp"
#include "tests/contract/every_plan.hpp"

namespace headrace::testing {
namespace {

using operators::ElementType;
using operators::Metric;
using operators::topk;
using operators::TopkMatrix;
using operators::TopkOptions;
using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;

struct Rows {
  std::vector<std::uint32_t> numbers;
  std::vector<float> scores;
};

TopkMatrix matrix_of(const std::vector<float>& values, std::uint32_t columns) {
  return {.data = values.data(), .row_count = values.size() / columns, .column_count = columns};
}

/// Whole numbers so small that every score is exact in float32, whatever the order of its sum. Many scores tie.
std::vector<float> whole_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

std::vector<float> fractions(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

Rows answered(const Operator& op, std::span<const float> query) {
  const std::vector<std::byte> bytes = answer_of(op, std::as_bytes(query));
  const std::size_t k = bytes.size() / 8;
  Rows rows{std::vector<std::uint32_t>(k), std::vector<float>(k)};
  std::memcpy(rows.numbers.data(), bytes.data(), 4 * k);
  std::memcpy(rows.scores.data(), bytes.data() + 4 * k, 4 * k);
  return rows;
}

Rows by_plain_loop(const std::vector<float>& values, std::span<const float> query, std::uint32_t k, Metric metric) {
  const std::size_t columns = query.size();
  std::vector<double> scores(values.size() / columns);
  for (std::size_t row = 0; row < scores.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const double value = values[row * columns + column];
      const double asked = query[column];
      scores[row] += metric == Metric::dot ? value * asked : (value - asked) * (value - asked);
    }
  }
  std::vector<std::uint32_t> order(scores.size());
  for (std::uint32_t row = 0; row < order.size(); ++row) order[row] = row;
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return metric == Metric::dot ? scores[a] > scores[b] : scores[a] < scores[b];
  });
  order.resize(k);
  Rows rows{order, {}};
  for (const std::uint32_t row : order) rows.scores.push_back(static_cast<float>(scores[row]));
  return rows;
}

std::string topk_refusal(const TopkMatrix& matrix, const TopkOptions& options = {.k = 1}) {
  try {
    static_cast<void>(topk(matrix, options));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

class TopkOnDevice : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(TopkOnDevice);

TEST_P(TopkOnDevice, EveryPlanAnswersBitForBitLikeTheHost) {
  const std::vector<float> values = fractions(std::size_t{333} * 21, 1);
  for (const ElementType element : {ElementType::float16, ElementType::float32}) {
    const Operator op = topk(matrix_of(values, 21), {.k = 7, .element = element});
    SCOPED_TRACE(to_string(element));
    ASSERT_NO_FATAL_FAILURE(exchange_under_every_plan(device(), op, 40));
  }
}

TEST_P(TopkOnDevice, AnyNumberOfThreadsAndBlocksAndInlineAnswersGiveTheSameBits) {
  const std::vector<float> values = fractions(std::size_t{5000} * 16, 2);
  const Operator op = topk(matrix_of(values, 16), {.k = 100, .metric = Metric::l2});
  for (const std::uint32_t threads : {32U, 96U, 1024U}) {
    Plan plan = serve::find_rung("page-locked").plan;
    plan.block_threads = threads;
    plan.blocks = threads == 96 ? 2 : 1;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 10));
  }
  Plan plan = serve::find_rung("dispatched").plan;
  plan.hang_after = std::chrono::hours(1);  // the machine may be busy
  plan.answer_inline = true;
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 20));
}

TEST(Topk, WholeNumbersAreWhatAPlainLoopSaysWithTiesByRow) {
  struct Shape {
    std::size_t rows;
    std::uint32_t columns;
    std::uint32_t k;
  };
  for (const auto& [rows, columns, k] :
       {Shape{1, 1, 1}, Shape{31, 3, 31}, Shape{32, 8, 5}, Shape{33, 9, 33}, Shape{3000, 20, 10}, Shape{700, 4, 256}}) {
    const std::vector<float> values = whole_numbers(rows * columns, 3);
    const std::vector<float> query = whole_numbers(columns, 4);
    for (const Metric metric : {Metric::dot, Metric::l2}) {
      for (const ElementType element : {ElementType::float16, ElementType::float32}) {
        const Operator op = topk(matrix_of(values, columns), {.k = k, .metric = metric, .element = element});
        const Rows expected = by_plain_loop(values, query, k, metric);
        for (int again = 0; again < 2; ++again) {  // begins elsewhere
          const Rows got = answered(op, query);
          EXPECT_EQ(got.numbers, expected.numbers) << rows << " x " << columns;
          EXPECT_EQ(got.scores, expected.scores) << rows << " x " << columns;
        }
      }
    }
  }
}

TEST(Topk, AQueryThatBeginsInTheMiddleGetsTheSameRows) {
  const std::vector<float> values = whole_numbers(std::size_t{1000} * 4, 5);
  const std::vector<float> query = whole_numbers(4, 6);
  const Operator op = topk(matrix_of(values, 4), {.k = 20});
  const serve::LoadedState loaded = op.load(Device::parse("cpu"));
  operators::TopkState state;
  std::memcpy(&state, loaded.bytes.data(), sizeof(state));
  const Rows expected = by_plain_loop(values, query, 20, Metric::dot);
  for (const std::uint32_t start : {0U, 32U, 512U, 992U}) {
    *state.cursor = start;
    std::vector<std::uint32_t> answer(40);
    operators::Topk::answer(CpuGroup{}, state, query.data(), answer.data());
    answer.resize(20);
    EXPECT_EQ(answer, expected.numbers) << start;
  }
}

TEST(Topk, NanComesLastAndZerosAreEqual) {
  const std::vector<float> values{0, 1, 2, 3};
  const Operator op = topk(matrix_of(values, 1), {.k = 3});
  const std::vector<float> infinity{std::numeric_limits<float>::infinity()};
  Rows rows = answered(op, infinity);  // 0 * infinity is NaN
  EXPECT_EQ(rows.numbers, (std::vector<std::uint32_t>{1, 2, 3}));
  const std::vector<float> nan{-std::numeric_limits<float>::quiet_NaN()};
  rows = answered(op, nan);
  EXPECT_EQ(rows.numbers, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(std::ranges::all_of(rows.scores, [](float score) { return std::isnan(score); }));
  const std::vector<float> signs{1, 0, -1, 0, 1};
  rows = answered(topk(matrix_of(signs, 1), {.k = 5}), std::vector<float>{-0.0F});
  EXPECT_EQ(rows.numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4})) << "-0 and 0 are the same score";
}

TEST(Topk, Float16MatricesAreTakenAsTheyAre) {
  const std::vector<std::uint16_t> halves{0x3C00, 0x4000, 0x3800};  // 1, 2, 0.5
  const TopkMatrix matrix{.data = halves.data(), .element = ElementType::float16, .row_count = 3, .column_count = 1};
  const Rows rows = answered(topk(matrix, {.k = 3, .element = ElementType::float32}), std::vector<float>{3});
  EXPECT_EQ(rows.numbers, (std::vector<std::uint32_t>{1, 0, 2}));
  EXPECT_EQ(rows.scores, (std::vector<float>{6, 3, 1.5}));
}

TEST(Topk, NamesWhatIsWrong) {
  std::vector<float> values{1, 2, 3, 4};
  EXPECT_EQ(topk_refusal({}), "topk: rows of the matrix must be 1 to 4294967264, not 0");
  EXPECT_EQ(topk_refusal({.data = values.data(), .row_count = 1, .column_count = 4097}),
            "topk: columns of the matrix must be 1 to 4096, not 4097");
  EXPECT_EQ(topk_refusal({.row_count = 1, .column_count = 1}), "topk: a matrix is needed");
  EXPECT_EQ(topk_refusal(matrix_of(values, 2), {.k = 3}), "topk: k is 3, but the matrix has only 2 rows");
  EXPECT_EQ(topk_refusal(matrix_of(values, 2), {.k = 257}), "topk: k must be 1 to 256, not 257");
  EXPECT_EQ(topk_refusal(matrix_of(values, 2), {.k = 1, .threads = 0}), "topk: threads must be 1 to 1024, not 0");
  values[3] = 70000;
  EXPECT_EQ(topk_refusal(matrix_of(values, 2)),
            "topk: element (1, 1) of the matrix is 70000, which is not finite as float16");
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(topk_refusal(matrix_of(values, 2), {.k = 1, .element = ElementType::float32}),
            "topk: element (1, 1) of the matrix is nan, which is not finite as float32");
}

}  // namespace
}  // namespace headrace::testing
