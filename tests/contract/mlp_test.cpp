#include "headrace/operators/mlp.hpp"

#include <gtest/gtest.h>

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

using operators::Activation;
using operators::ElementType;
using operators::mlp;
using operators::MlpLayer;
using operators::MlpOptions;
using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;

/// Layers with weights and biases from `make`.
template <class Make>
std::vector<MlpLayer> layers_of(const std::vector<std::uint32_t>& sizes, Make make) {
  std::vector<MlpLayer> layers;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    MlpLayer layer{.inputs = sizes[i], .outputs = sizes[i + 1]};
    layer.weights.resize(std::size_t{layer.inputs} * layer.outputs);
    layer.biases.resize(layer.outputs);
    for (float& weight : layer.weights) weight = make();
    for (float& bias : layer.biases) bias = make();
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<MlpLayer> random_layers(const std::vector<std::uint32_t>& sizes) {
  std::mt19937 random(7);
  return layers_of(sizes, [&] { return std::uniform_real_distribution<float>(-0.2F, 0.2F)(random); });
}

/// Whole numbers small enough that every sum is exact in float32, in any order.
std::vector<MlpLayer> whole_layers(const std::vector<std::uint32_t>& sizes) {
  std::mt19937 random(8);
  return layers_of(sizes, [&] { return static_cast<float>(static_cast<int>(random() % 3) - 1); });
}

std::vector<double> by_plain_loop(const std::vector<MlpLayer>& layers, std::span<const float> query, bool relu) {
  std::vector<double> values(query.begin(), query.end());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<double> sums(layers[i].outputs);
    for (std::size_t row = 0; row < sums.size(); ++row) {
      sums[row] = layers[i].biases.empty() ? 0.0 : static_cast<double>(layers[i].biases[row]);
      for (std::size_t column = 0; column < values.size(); ++column) {
        sums[row] += static_cast<double>(layers[i].weights[row * values.size() + column]) * values[column];
      }
      if (relu && i + 1 < layers.size() && sums[row] < 0) sums[row] = 0;
    }
    values = std::move(sums);
  }
  return values;
}

std::vector<float> answered(const Operator& op, std::span<const float> query) {
  const std::vector<std::byte> bytes = answer_of(op, std::as_bytes(query));
  std::vector<float> answer(bytes.size() / sizeof(float));
  std::memcpy(answer.data(), bytes.data(), bytes.size());
  return answer;
}

std::string message_of(const std::vector<MlpLayer>& layers, const MlpOptions& options = {}) {
  try {
    static_cast<void>(mlp(layers, options));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

class MlpOnDevice : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(MlpOnDevice);

TEST_P(MlpOnDevice, EveryPlanAnswersBitForBitLikeTheHost) {
  for (const ElementType element : {ElementType::float16, ElementType::float32}) {
    const Operator op = mlp(random_layers({37, 64, 50, 5}), {.element = element});
    SCOPED_TRACE(to_string(element));
    ASSERT_NO_FATAL_FAILURE(exchange_under_every_plan(device(), op, 60));
  }
}

TEST_P(MlpOnDevice, AnyNumberOfThreadsAndBlocksAndInlineAnswersGiveTheSameBits) {
  const Operator op = mlp(random_layers({256, 256, 256, 16}));
  for (const std::uint32_t threads : {32U, 96U, 1024U}) {
    Plan plan = serve::find_rung("page-locked").plan;
    plan.block_threads = threads;
    plan.blocks = threads == 96 ? 2 : 1;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 20));
  }
  Plan plan = serve::find_rung("dispatched").plan;
  plan.hang_after = std::chrono::hours(1);  // the machine may be busy
  plan.answer_inline = true;
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 40));
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 90, 20, 1));
}

TEST(Mlp, WholeNumbersAreWhatAPlainLoopSays) {
  const std::vector<std::vector<std::uint32_t>> shapes{
      {1, 1}, {7, 3}, {8, 8, 8}, {9, 17, 1, 33}, {256, 256, 256, 16}, {1024, 2}, {3, 1024, 5}};
  std::mt19937 random(3);
  for (const auto& sizes : shapes) {
    const std::vector<MlpLayer> layers = whole_layers(sizes);
    std::vector<float> query(sizes.front());
    for (float& value : query) value = static_cast<float>(static_cast<int>(random() % 5) - 2);
    for (const bool relu : {true, false}) {
      const MlpOptions options{.activation = relu ? Activation::relu : Activation::identity};
      const std::vector<double> expected = by_plain_loop(layers, query, relu);
      const std::vector<float> got = answered(mlp(layers, options), query);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(static_cast<double>(got[i]), expected[i]) << i;
    }
  }
}

TEST(Mlp, WithoutBiasesTheyAreZero) {
  const std::vector<float> query{3};
  EXPECT_EQ(answered(mlp({{.inputs = 1, .outputs = 2, .weights = {2, -5}}}), query), (std::vector<float>{6, -15}));
}

TEST(Mlp, NanPassesTheActivationAndInfinityIsCutBelowZero) {
  const std::vector<MlpLayer> layers{{.inputs = 1, .outputs = 1, .weights = {-1}},
                                     {.inputs = 1, .outputs = 1, .weights = {1}}};
  const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(answered(mlp(layers), nan)[0]));
  const std::vector<float> infinity{std::numeric_limits<float>::infinity()};
  EXPECT_EQ(answered(mlp(layers), infinity)[0], 0.0F);
}

TEST(Mlp, SamplesAreDifferentAndWithinOne) {
  const Operator op = mlp(whole_layers({300, 1}));
  float least = 1;
  float most = -1;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const std::vector<std::byte> bytes = query_of(op, number);
    EXPECT_NE(bytes, query_of(op, number + 1));
    std::vector<float> values(300);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    least = std::min(least, *std::ranges::min_element(values));
    most = std::max(most, *std::ranges::max_element(values));
  }
  EXPECT_GE(least, -1.0F);
  EXPECT_LT(least, -0.9F);
  EXPECT_LT(most, 1.0F);
  EXPECT_GT(most, 0.9F);
}

TEST(Mlp, NamesTheLayerThatIsWrong) {
  const MlpLayer good{.inputs = 2, .outputs = 1, .weights = {1, 2}};
  EXPECT_EQ(message_of({}), "mlp: the number of layers must be 1 to 8, not 0");
  EXPECT_EQ(message_of({{.inputs = 0, .outputs = 1}}), "mlp: inputs of layer 0 must be 1 to 1024, not 0");
  EXPECT_EQ(message_of({{.inputs = 1, .outputs = 1025}}), "mlp: outputs of layer 0 must be 1 to 1024, not 1025");
  EXPECT_EQ(message_of({good, good}), "mlp: layer 1 has 2 inputs, but layer 0 before it has 1 outputs");
  EXPECT_EQ(message_of({{.inputs = 2, .outputs = 2, .weights = {1, 2, 3}}}), "mlp: layer 0 has 3 weights, not 2 x 2");
  MlpLayer wrong = good;
  wrong.biases = {1, 2};
  EXPECT_EQ(message_of({wrong}), "mlp: layer 0 has 2 biases, but 1 outputs");
  wrong.biases = {std::numeric_limits<float>::infinity()};
  EXPECT_EQ(message_of({wrong}), "mlp: bias 0 of layer 0 is inf, which is not finite");
  wrong = good;
  wrong.weights[1] = 65520;
  EXPECT_EQ(message_of({wrong}), "mlp: weight (0, 1) of layer 0 is 65520, which is not finite as float16");
  EXPECT_EQ(message_of({wrong}, {.element = ElementType::float32}), "");
  EXPECT_EQ(message_of({good}, {.threads = 1025}), "mlp: threads must be 1 to 1024, not 1025");
}

}  // namespace
}  // namespace headrace::testing
