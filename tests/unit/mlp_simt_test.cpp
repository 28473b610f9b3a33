#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "headrace/operators/mlp.hpp"
#include "tests/unit/thread_group.hpp"

/// The summation order of an Mlp, which is the same for blocks of any number of threads.
namespace headrace::operators {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

TEST(MlpSimt, BlocksOfAnyNumberOfThreadsGiveTheBitsOfTheHost) {
  const std::vector<MlpLayer> layers{
      {.inputs = 83, .outputs = 41, .weights = random_floats(83 * 41, 1), .biases = random_floats(41, 2)},
      {.inputs = 41, .outputs = 3, .weights = random_floats(41 * 3, 3), .biases = random_floats(3, 4)}};
  const std::vector<float> query = random_floats(83, 5);
  for (const ElementType element : {ElementType::float32, ElementType::float16}) {
    const serve::Operator op = mlp(layers, {.element = element});
    const serve::LoadedState loaded = op.load(Device::parse("cpu"));
    MlpState state;
    std::memcpy(&state, loaded.bytes.data(), sizeof(state));
    std::vector<float> expected(3);
    Mlp::answer(CpuGroup{}, state, query.data(), expected.data());
    for (const std::uint32_t threads : {1U, 2U, 7U, 32U}) {
      std::vector<float> answer(3, -99.0F);
      test_groups::run_block(threads, [&](const test_groups::ThreadGroup& group) {
        Mlp::answer(group, state, query.data(), answer.data());
      });
      EXPECT_EQ(answer, expected) << threads << " threads, " << to_string(element);
    }
  }
}

/// The order that the header documents, computed literally.
TEST(MlpSimt, SumsHaveTheOrderThatIsStated) {
  constexpr std::uint32_t kInputs = 100;
  const std::vector<float> weights = random_floats(kInputs, 6);
  const std::vector<float> query = random_floats(kInputs, 7);
  float sums[kMlpParts][kUnit] = {};
  for (std::uint32_t i = 0; i < kInputs; ++i) {
    float& sum = sums[i / kUnit % kMlpParts][i % kUnit];
    sum = std::fmaf(weights[i], query[i], sum);
  }
  float parts[kMlpParts];
  for (std::uint32_t p = 0; p < kMlpParts; ++p) parts[p] = sum_of_unit(sums[p]);
  const float expected = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + 0.25F;
  const serve::Operator op = mlp({{.inputs = kInputs, .outputs = 1, .weights = weights, .biases = {0.25F}}},
                                 {.element = ElementType::float32});
  float answer = 0;
  serve::answer_here(op, op.load(Device::parse("cpu")), reinterpret_cast<const std::byte*>(query.data()),
                     reinterpret_cast<std::byte*>(&answer));
  EXPECT_EQ(answer, expected);
}

TEST(Elements, Float16KeepsItsBitsAndRoundsToTheNearest) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_float16(static_cast<std::uint16_t>(bits));
    const std::uint32_t back = to_float16(value);
    const bool is_nan = (bits & 0x7FFFU) > 0x7C00U;
    EXPECT_EQ(back, is_nan ? (bits & 0x8000U) | 0x7E00U : bits);
  }
  EXPECT_EQ(from_float16(0x3C00), 1.0F);
  EXPECT_EQ(from_float16(0x0001), 0x1p-24F);
  EXPECT_EQ(from_float16(0xFBFF), -65504.0F);
  EXPECT_EQ(to_float16(65519.996F), 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F), 0x7C00);
  EXPECT_EQ(to_float16(1 + 0x1p-11F), 0x3C00) << "a tie goes to even";
  EXPECT_EQ(to_float16(1 + 0x3p-11F), 0x3C02) << "a tie goes to even";
  EXPECT_EQ(to_float16(0x1p-25F), 0x0000) << "a tie goes to even";
  EXPECT_EQ(to_float16(0x1.8p-25F), 0x0001);
  EXPECT_EQ(to_float16(0x1.ffcp-15F), 0x0400) << "rounded up to the least normal number";
}

}  // namespace
}  // namespace headrace::operators
