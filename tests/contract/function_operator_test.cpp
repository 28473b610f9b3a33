#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/config.hpp"
#include "headrace/device/detail/code.hpp"
#include "headrace/operators/function.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/every_plan.hpp"

/// Operators that are a C function: each schedule of a CPU device calls it, and none delivers a query that it could not
/// answer.
namespace headrace::testing {
namespace {

using operators::FunctionOptions;
using serve::Client;
using serve::Completion;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;

constexpr std::size_t kQueryBytes = 24;
constexpr std::size_t kAnswerBytes = 40;
/// The function fails on a query whose first word equals the state's.
constexpr std::uint64_t kRefused = 1 << 20;

std::int32_t mix(const void* state, const void* query, void* answer, std::uint32_t /*block*/,
                 std::uint32_t /*block_count*/) {
  std::uint64_t words[kQueryBytes / 8];
  std::memcpy(words, query, kQueryBytes);
  std::uint64_t refused;
  std::memcpy(&refused, state, sizeof refused);
  std::uint64_t answers[kAnswerBytes / 8];
  for (std::uint64_t i = 0; i < std::size(answers); ++i) answers[i] = (words[0] ^ words[1]) * 31 + words[2] + i;
  std::memcpy(answer, answers, kAnswerBytes);
  return words[0] == refused ? 1 : 0;
}

void sample(std::uint64_t index, std::byte* query) {
  const std::uint64_t words[] = {index, index * 0x9E3779B97F4A7C15U, ~index};
  std::memcpy(query, words, kQueryBytes);
}

Operator mixing(std::shared_ptr<const std::uint64_t> refused = std::make_shared<std::uint64_t>(kRefused)) {
  const void* state = refused.get();
  return operators::function({.name = "mix",
                              .query_bytes = kQueryBytes,
                              .answer_bytes = kAnswerBytes,
                              .function = &mix,
                              .state = state,
                              .owner = std::move(refused),
                              .sample = &sample});
}

TEST(FunctionOperator, IsCalledUnderEverySchedule) {
  ASSERT_NO_FATAL_FAILURE(exchange_under_every_plan(Device::parse("cpu:0"), mixing(), 300));
}

TEST(FunctionOperator, WhatItCannotAnswerIsNeverDelivered) {
  const Operator op = mixing();
  for (const Plan& plan : every_plan()) {
    SCOPED_TRACE(says_of(plan));
    Engine engine(Device::parse("cpu:0"), op, plan);
    {
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 0, 20));
      ASSERT_TRUE(client.submit(query_of(op, kRefused), {.tag = kRefused}).ok());
      EXPECT_EQ(outcomes(client).at(kRefused).error().code, Errc::device_fault);
      ASSERT_TRUE(engine.fault().has_value());
      EXPECT_EQ(engine.fault()->code, Errc::device_fault);
      const auto later = client.submit(query_of(op, 1), {});
      ASSERT_FALSE(later.ok());
      EXPECT_EQ(later.error().code, Errc::device_fault);
    }
    EXPECT_EQ(engine.statistics().failed, 1U);
  }
  // The operator itself is unaffected: another engine serves it.
  Engine engine(Device::parse("cpu:0"), op, Plan{});
  Client client = engine.connect();
  exchange(client, op, 0, 20);
}

TEST(FunctionOperator, KeepsItsOwnerAsLongAsAnEngineNeedsIt) {
  auto state = std::make_shared<const std::uint64_t>(kRefused);
  const std::weak_ptr<const std::uint64_t> watched = state;
  {
    std::optional<Operator> op = mixing(std::move(state));
    Engine engine(Device::parse("cpu:0"), *op, Plan{});
    op.reset();
    EXPECT_FALSE(watched.expired());
    Client client = engine.connect();
    exchange(client, engine.op(), 0, 20);
  }
  EXPECT_TRUE(watched.expired());
}

TEST(FunctionOperator, IsAskedForCodeOnDevicesThatNeedIt) {
  int asked = 0;
  FunctionOptions options{.name = "mix", .query_bytes = kQueryBytes, .answer_bytes = kAnswerBytes, .function = &mix};
  options.state = &kRefused;
  options.sample = &sample;
  options.code = [&](Device /*device*/, std::span<const std::string> kernels) {
    EXPECT_EQ(kernels.size(), 2U) << "the kernels of a plan that launches for each batch";
    ++asked;
    return std::vector<std::byte>(1);
  };
  const Operator op = operators::function(options);
  {
    Engine engine(Device::parse("cpu:0"), op, Plan{});
    Client client = engine.connect();
    exchange(client, engine.op(), 0, 20);
  }
  EXPECT_EQ(asked, 0);
  for (const Device device : Device::list()) {
    if (device.properties().host_cores) continue;
    EXPECT_THROW(Engine(device, op, Plan{}), DeviceError) << "one byte is not code";
    EXPECT_GE(asked, 1);
  }
}

TEST(FunctionOperator, IsMadeWhenAnEngineOnACpuDeviceStarts) {
  int asked = 0;
  FunctionOptions options{.name = "mix", .query_bytes = kQueryBytes, .answer_bytes = kAnswerBytes};
  options.make_function = [&] {
    ++asked;
    return &mix;
  };
  options.state = &kRefused;
  options.sample = &sample;
  const Operator op = operators::function(options);
  EXPECT_EQ(asked, 0);
  {
    Engine engine(Device::parse("cpu:0"), op, Plan{});
    EXPECT_EQ(asked, 1);
    Client client = engine.connect();
    exchange(client, engine.op(), 0, 20);
  }

  options.make_function = []() -> operators::AnswerFunction { throw UsageError("line 3 is wrong"); };
  try {
    const Engine engine(Device::parse("cpu:0"), operators::function(options), Plan{});
    FAIL() << "a function was made from no code";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "line 3 is wrong");
  }
  options.make_function = []() -> operators::AnswerFunction { return nullptr; };
  EXPECT_THROW(Engine(Device::parse("cpu:0"), operators::function(options), Plan{}), UsageError);
}

TEST(FunctionOperator, ReadsNoArrayOfAnotherDevice) {
  FunctionOptions options{.name = "mix", .query_bytes = kQueryBytes, .answer_bytes = kAnswerBytes, .function = &mix};
  options.state = &kRefused;
  options.arrays = {{.name = "rows", .data = &kRefused, .bytes = 8, .shape = {1}, .cuda = 3}};
  try {
    const Engine engine(Device::parse("cpu:0"), operators::function(options), Plan{});
    FAIL() << "an array on a GPU was accepted";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::not_supported);
    EXPECT_STREQ(error.what(), "operator mix: rows lies in the memory of cuda:3 and cannot be read on a CPU device");
  }
}

TEST(FunctionOperator, KernelsAreThoseOfTheNewestArchitectureThatADeviceHas) {
  if (!kBuiltWithCuda) {
    EXPECT_THROW(static_cast<void>(operators::function_kernels(90)), DeviceError);
    return;
  }
  EXPECT_FALSE(operators::function_kernels(120).empty());
  EXPECT_EQ(operators::function_kernels(120).data(), operators::function_kernels(90).data());
  EXPECT_THROW(static_cast<void>(operators::function_kernels(52)), DeviceError);
}

TEST(DeviceCode, IsOfGpusAlone) {
  const std::vector<std::byte> image(8);
  try {
    const DeviceCode code(Device::parse("cpu:0"), image);
    FAIL() << "a CPU device accepted code";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::not_supported);
  }
}

TEST(FunctionOperator, RefusesWhatCannotBe) {
  const auto says = [](FunctionOptions options) {
    try {
      static_cast<void>(operators::function(std::move(options)));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(says({.name = "a", .query_bytes = 1, .answer_bytes = 1}), "operator a has no function");
  EXPECT_EQ(says({.name = "a", .query_bytes = 0, .answer_bytes = 8, .function = &mix}),
            "operator a: a query has 0 bytes and an answer 8, but both need at least one");
  EXPECT_EQ(says({.name = "a", .query_bytes = 8, .answer_bytes = 8, .function = &mix, .threads = 1025}),
            "operator a: 1 blocks of 1025 threads are not possible: it needs at least 1 block of 1 to 1024 threads");
}

}  // namespace
}  // namespace headrace::testing
