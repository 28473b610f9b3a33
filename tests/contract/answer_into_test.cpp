#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "devices.hpp"
#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/serve/engine.hpp"

// Engine::answer_into(): queries that lie on the device, on a stream of the caller's.

namespace headrace::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::size_t kQueryBytes = 64;

class AnswerInto : public ::testing::TestWithParam<std::string> {
 protected:
  AnswerInto() : op_(operators::light({.query_bytes = kQueryBytes, .threads = 32, .steps = 4})) {}

  /// Queries and room for their answers, on the host and on the device.
  struct Memory {
    Memory(Device device, const Operator& op, std::size_t count)
        : queries(count * op.query_bytes),
          answers(count * op.answer_bytes),
          given(device, MemoryKind::device, queries.size()),
          told(device, MemoryKind::device, answers.size()) {
      for (std::size_t i = 0; i < count; ++i) op.sample(i, queries.data() + i * op.query_bytes);
    }
    std::vector<std::byte> queries;
    std::vector<std::byte> answers;
    Buffer given;
    Buffer told;
    [[nodiscard]] std::span<const std::byte> from() const { return {given.data(), queries.size()}; }
    [[nodiscard]] std::span<std::byte> to() const { return {told.data(), answers.size()}; }
  };

  /// What the operator answers on the host.
  [[nodiscard]] std::vector<std::byte> expected(const Memory& memory) const {
    const LoadedState state = op_.load(Device::parse("cpu"));
    std::vector<std::byte> answers(memory.answers.size());
    for (std::size_t i = 0; i < memory.queries.size() / op_.query_bytes; ++i) {
      answer_here(op_, state, memory.queries.data() + i * op_.query_bytes, answers.data() + i * op_.answer_bytes);
    }
    return answers;
  }

  const Device device_ = Device::parse(GetParam());
  Operator op_;
};

TEST_P(AnswerInto, WorkOnTheStreamIsInOrder) {
  const Stream stream(device_);
  Memory memory(device_, op_, 1000);
  Engine engine(device_, op_, Plan{});
  ASSERT_TRUE(stream.copy(memory.given.data(), memory.queries.data(), memory.queries.size()));
  ASSERT_TRUE(engine.answer_into(stream, memory.from(), memory.to()));
  ASSERT_TRUE(stream.copy(memory.answers.data(), memory.told.data(), memory.answers.size()));
  ASSERT_TRUE(stream.wait());
  EXPECT_EQ(memory.answers, expected(memory));
}

TEST_P(AnswerInto, MoreQueriesThanALaunchHoldsAreAnswered) {
  constexpr std::size_t kCount = 2 * 65'535 + 3;
  const Stream stream(device_);
  Memory memory(device_, op_, kCount);
  Engine engine(device_, op_, Plan{.schedule = Schedule::none});
  ASSERT_TRUE(stream.copy(memory.given.data(), memory.queries.data(), memory.queries.size()));
  ASSERT_TRUE(engine.answer_into(stream, memory.from(), memory.to()));
  ASSERT_TRUE(stream.copy(memory.answers.data(), memory.told.data(), memory.answers.size()));
  ASSERT_TRUE(stream.wait());
  EXPECT_EQ(memory.answers, expected(memory));
}

TEST_P(AnswerInto, StopWaitsForWhatIsOnTheStream) {
  std::optional<Stream> stream(std::in_place, device_);
  Memory memory(device_, op_, 100);
  const auto want = expected(memory);
  {
    Engine engine(device_, op_, Plan{});
    for (int i = 0; i < 50; ++i) {  // more than there are events without reuse
      ASSERT_TRUE(stream->copy(memory.given.data(), memory.queries.data(), memory.queries.size()));
      ASSERT_TRUE(engine.answer_into(*stream, memory.from(), memory.to()));
    }
    engine.stop();
    EXPECT_EQ(engine.answer_into(*stream, memory.from(), memory.to()).error().code, Errc::stopped);
    EXPECT_TRUE(*stream->ready());
  }
  ASSERT_TRUE(stream->copy(memory.answers.data(), memory.told.data(), memory.answers.size()));
  ASSERT_TRUE(stream->wait());
  EXPECT_EQ(memory.answers, want);
}

TEST_P(AnswerInto, TheStreamMayBeGoneBeforeTheEngine) {
  Memory memory(device_, op_, 10);
  Engine engine(device_, op_, Plan{});
  for (int i = 0; i < 3; ++i) {
    const Stream stream(device_);
    ASSERT_TRUE(stream.copy(memory.given.data(), memory.queries.data(), memory.queries.size()));
    ASSERT_TRUE(engine.answer_into(stream, memory.from(), memory.to()));
    ASSERT_TRUE(stream.copy(memory.answers.data(), memory.told.data(), memory.answers.size()));
    ASSERT_TRUE(stream.wait());
  }
  EXPECT_EQ(memory.answers, expected(memory));
}

TEST_P(AnswerInto, WhatDoesNotFitIsRefused) {
  const Stream stream(device_);
  const Memory memory(device_, op_, 4);
  Engine engine(device_, op_, Plan{});
  const auto refused = [&](std::span<const std::byte> from, std::span<std::byte> to, const char* why) {
    EXPECT_THAT([&] { static_cast<void>(engine.answer_into(stream, from, to)); },
                ThrowsMessage<UsageError>(HasSubstr(why)));
  };
  refused(memory.from().first(kQueryBytes + 1), memory.to(), "65 bytes of queries are not whole ones");
  refused(memory.from(), memory.to().first(1), "1 bytes of answers are not whole ones");
  refused(memory.from().first(2 * kQueryBytes), memory.to(), "2 queries cannot have 4 answers");
  refused(memory.from().subspan(8, kQueryBytes), memory.to().first(op_.answer_bytes), "multiple of 16 bytes");
  EXPECT_TRUE(engine.answer_into(stream, memory.from().first(0), memory.to().first(0)));
}

TEST_P(AnswerInto, ResidentKernelsLeaveNoRoom) {
  const Stream stream(device_);
  const Memory memory(device_, op_, 1);
  for (const Schedule schedule : {Schedule::dispatched, Schedule::persistent}) {
    Engine engine(device_, op_, Plan{.schedule = schedule, .host_memory = MemoryKind::mapped});
    EXPECT_THAT([&] { static_cast<void>(engine.answer_into(stream, memory.from(), memory.to())); },
                ThrowsMessage<UsageError>(HasSubstr("resident kernels")));
  }
}

TEST_P(AnswerInto, AStreamOfAnotherDeviceIsRefused) {
  Engine engine(device_, op_, Plan{});
  const Stream stream(Device::parse(GetParam() == "cpu:0" ? "cpu:1" : "cpu:0"));
  EXPECT_THAT([&] { static_cast<void>(engine.answer_into(stream, {}, {})); },
              ThrowsMessage<UsageError>(HasSubstr("the stream belongs to")));
}

INSTANTIATE_TEST_SUITE_P(Devices, AnswerInto, ::testing::ValuesIn(testing::device_names()), testing::test_name);

}  // namespace
}  // namespace headrace::serve
