#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/reference.hpp"
#include "tests/contract/exchange.hpp"

/// Promises of every schedule that makes calls to the device.
namespace headrace::testing {
namespace {

using serve::Allocator;
using serve::Client;
using serve::Engine;
using serve::EngineStatistics;
using serve::Operator;
using serve::Plan;
using serve::Schedule;
using serve::Streams;

constexpr MemoryKind kHostMemories[] = {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped,
                                        MemoryKind::managed};

class Schedules : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(Schedules);

bool refused(const Plan& plan) {
  return plan.schedule == Schedule::graph && plan.batch_max > 1 && plan.host_memory == MemoryKind::pageable;
}

/// Several clients at once, each with its own queries.
void exchange_from_clients(Engine& engine, const Operator& op, std::uint64_t clients, std::size_t each) {
  std::vector<std::jthread> threads;
  for (std::uint64_t c = 0; c < clients; ++c) {
    threads.emplace_back([&, c, client = engine.connect()]() mutable { exchange(client, op, 10000 * c, each); });
  }
}

TEST_P(Schedules, EveryQueryIsAnsweredOnceAndRight) {
  const Operator op = operators::light({.query_bytes = 96});
  for (const Schedule schedule : kCallingSchedules) {
    for (const MemoryKind memory : kHostMemories) {
      for (const std::uint32_t batch : {1U, 7U, 64U}) {
        SCOPED_TRACE(::testing::Message() << to_string(schedule) << " " << to_string(memory) << " batch " << batch);
        Plan plan = plan_of(schedule, 2, 3);
        plan.host_memory = memory;
        plan.batch_max = batch;
        plan.sample_stages_every = 4;
        if (refused(plan)) continue;
        Engine engine(device(), op, plan);
        exchange_from_clients(engine, op, 3, 100);
        ASSERT_FALSE(HasFailure());
        const EngineStatistics statistics = engine.statistics();
        EXPECT_EQ(statistics.submitted, 300U);
        EXPECT_EQ(statistics.answered, 300U);
        EXPECT_EQ(statistics.failed + statistics.cancelled + statistics.expired, 0U);
        EXPECT_EQ(statistics.stages.samples, 75U);
        EXPECT_GT(statistics.stages.kernel, Duration::zero());
      }
    }
  }
}

TEST_P(Schedules, QueriesOfSeveralBlocksAndOddSizes) {
  const Operator op =
      operators::reference({.query_bytes = 516, .answer_bytes = 700, .blocks = 3, .threads = 96, .steps = 50});
  for (const Schedule schedule : kCallingSchedules) {
    for (const MemoryKind memory : {MemoryKind::pinned, MemoryKind::mapped}) {
      Plan plan = plan_of(schedule, 1, 2);
      plan.host_memory = memory;
      plan.batch_max = 5;
      plan.blocks = 2;
      plan.block_threads = 64;
      Engine engine(device(), op, plan);
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 60));
    }
  }
}

TEST_P(Schedules, EveryAllocatorAndSharedStreams) {
  const Operator op = operators::light();
  for (const Schedule schedule : kCallingSchedules) {
    for (const Allocator allocator : {Allocator::per_query, Allocator::stream_ordered, Allocator::pool}) {
      for (const Streams streams : {Streams::shared, Streams::per_thread}) {
        if (schedule == Schedule::graph && allocator != Allocator::pool) continue;
        SCOPED_TRACE(::testing::Message()
                     << to_string(schedule) << " " << to_string(allocator) << " " << to_string(streams));
        Plan plan = plan_of(schedule, 2, 2);
        plan.allocator = allocator;
        plan.streams = streams;
        plan.batch_max = 3;
        Engine engine(device(), op, plan);
        exchange_from_clients(engine, op, 2, 50);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

TEST_P(Schedules, SlowClientsLeaveTheThreadsAsleepBetweenQueries) {
  const Operator op = operators::light();
  for (const Schedule schedule : kCallingSchedules) {
    Plan plan = plan_of(schedule, 2, 2);
    plan.spin = Duration::zero();  // every wait is a sleep
    plan.batch_max = 4;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100, 1));
  }
}

TEST_P(Schedules, TheLastSamplesAreKeptInOrder) {
  const Operator op = operators::light();
  for (const Schedule schedule : kCallingSchedules) {
    SCOPED_TRACE(to_string(schedule));
    Plan plan = plan_of(schedule, 1, 2);
    plan.sample_stages_every = 1;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    const Time began = SteadyClock::now();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100));
    const Duration all = SteadyClock::now() - began;
    const auto recent = engine.statistics().recent;
    ASSERT_EQ(recent.size(), 32U);
    EXPECT_TRUE(std::ranges::is_sorted(recent, {}, &serve::StageSample::submitted));
    for (const auto& sample : recent) {
      EXPECT_GE(sample.submitted, began);
      EXPECT_GT(sample.kernel, Duration::zero());
      EXPECT_GE(sample.queue, Duration::zero());
      EXPECT_LE(sample.queue, sample.whole);
      EXPECT_LE(sample.whole, all);
    }
  }
}

TEST_P(Schedules, NothingIsLostWhenStoppingRacesWithSubmitting) {
  const Operator op = operators::light({.query_bytes = 64});
  for (const Schedule schedule : kCallingSchedules) {
    for (const Duration age : {Duration::zero(), Duration(std::chrono::hours(1))}) {
      SCOPED_TRACE(::testing::Message() << to_string(schedule) << " age " << age.count());
      for (int round = 0; round < 5; ++round) {
        Plan plan = plan_of(schedule, 2, 2);
        plan.batch_max = 8;
        plan.batch_age = age;
        Engine engine(device(), op, plan);
        std::atomic<std::uint64_t> started{0};
        std::vector<std::jthread> threads;
        for (int c = 0; c < 2; ++c) {
          threads.emplace_back([&, client = engine.connect()]() mutable {
            const auto query = query_of(op, 1);
            std::size_t admitted = 0;
            std::size_t back = 0;
            for (bool stopped = false; !stopped;) {
              const auto ticket = client.submit(query);
              admitted += ticket ? 1U : 0U;
              stopped = failed_with(ticket, Errc::stopped);
              back += client.poll([](const serve::Completion&) {});
              started.fetch_add(1);
            }
            while (client.in_flight() > 0) back += client.poll([](const serve::Completion&) {});
            EXPECT_EQ(admitted, back);
          });
        }
        while (started.load() < 50) std::this_thread::yield();
        engine.stop();
      }
    }
  }
}

TEST_P(Schedules, CombinationsThatCannotWorkAreRefusedByName) {
  const Operator op = operators::light();
  const auto expect_refused = [&](const char* names, auto change) {
    Plan plan = plan_of(Schedule::graph);
    change(plan);
    try {
      Engine engine(device(), op, plan);
      ADD_FAILURE() << names;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(names), std::string::npos) << error.what();
    }
  };
  expect_refused("allocator must be pool", [](Plan& p) { p.allocator = Allocator::per_query; });
  expect_refused("allocator must be pool", [](Plan& p) { p.allocator = Allocator::stream_ordered; });
  expect_refused("must not be pageable", [](Plan& p) {
    p.host_memory = MemoryKind::pageable;
    p.batch_max = 2;
  });
  expect_refused("batch_max", [](Plan& p) { p.batch_max = 0; });
  expect_refused("batch_age", [](Plan& p) { p.batch_age = Duration{-1}; });
  Operator without = op;
  without.scattered_kernel = {};
  Plan plan = plan_of(Schedule::pipelined);
  plan.host_memory = MemoryKind::mapped;
  plan.batch_max = 2;
  EXPECT_THROW(Engine(device(), without, plan), UsageError);
  plan.batch_max = 1;
  EXPECT_NO_THROW(Engine(device(), without, plan));
}

}  // namespace
}  // namespace headrace::testing
