#include "device/cpu/testing.hpp"
#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/exchange.hpp"

/// Allocations that fail, at the start and later. CPU devices only: their allocations can be made to fail.
namespace headrace::testing {
namespace {

using headrace::detail::AllocationFailure;
using serve::Allocator;
using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;

// Every allocation of a start fails in turn: the start reports each failure and leaves nothing behind.
TEST(ScheduleFailures, AStartWithoutMemoryLeavesNothingBehind) {
  const Operator op = operators::light();
  const Device device = Device::parse("cpu");
  for (const Schedule schedule : kCallingSchedules) {
    for (const MemoryKind memory : {MemoryKind::pinned, MemoryKind::mapped}) {
      SCOPED_TRACE(::testing::Message() << to_string(schedule) << " " << to_string(memory));
      Plan plan = plan_of(schedule, 2, 2);
      plan.host_memory = memory;
      plan.batch_max = 4;
      plan.clients_max = 2;
      const std::size_t before = device.memory().free_bytes;
      std::int64_t failures = 0;
      for (bool happened = true; happened; ++failures) {
        AllocationFailure failure(failures);
        try {
          // The start may succeed all the same: a device makes do with fewer threads of its own.
          const Engine engine(device, op, plan);
        } catch (const DeviceError& error) {
          EXPECT_TRUE(error.code() == Errc::out_of_memory || error.code() == Errc::system) << error.what();
        }
        happened = failure.happened();
        ASSERT_EQ(device.memory().free_bytes, before) << "after allocation " << failures;
        ASSERT_LT(failures, 1000);
      }
      EXPECT_GT(failures, 5);
    }
  }
}

// A batch that gets no memory fails, each of its queries comes back once, and the next batch is answered.
TEST(ScheduleFailures, ABatchWithoutMemoryFailsAlone) {
  const Operator op = operators::light();
  for (const Schedule schedule : {Schedule::blocking, Schedule::pipelined, Schedule::async}) {
    for (const Allocator allocator : {Allocator::per_query, Allocator::stream_ordered}) {
      for (const std::int64_t allocation : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << to_string(schedule) << " " << to_string(allocator) << " " << allocation);
        Plan plan = plan_of(schedule, 1, 2);
        plan.allocator = allocator;
        plan.batch_max = 3;
        plan.batch_age = std::chrono::hours(1);
        Engine engine(Device::parse("cpu"), op, plan);
        Client client = engine.connect();
        const std::size_t free_bytes = engine.device().memory().free_bytes;
        {
          const AllocationFailure failure(allocation);
          for (std::uint64_t i = 0; i < 3; ++i) ASSERT_OK(client.submit(query_of(op, i), {.tag = i}));
          const auto back = outcomes(client);
          ASSERT_EQ(back.size(), 3U);
          for (const auto& [tag, status] : back) EXPECT_TRUE(failed_with(status, Errc::out_of_memory)) << tag;
          EXPECT_TRUE(failure.happened());
        }
        EXPECT_EQ(engine.statistics().failed, 3U);
        EXPECT_FALSE(engine.fault());
        ASSERT_NO_FATAL_FAILURE(exchange(client, op, 10, 30));
        EXPECT_EQ(engine.device().memory().free_bytes, free_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::testing
