#include <atomic>
#include <thread>
#include <vector>

#include "base/event_descriptor.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/exchange.hpp"

/// Schedule::caller: queries are answered only within calls of their client.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Completion;
using serve::Engine;
using serve::Plan;
using serve::Schedule;
using std::chrono::hours;
using std::chrono::milliseconds;

class Caller : public DeviceTest {
 protected:
  [[nodiscard]] static Plan plan(std::uint32_t slots = 64, std::uint32_t batch = 8) {
    Plan made = plan_of(Schedule::caller);
    made.host_memory = MemoryKind::mapped;
    made.slots = slots;
    made.batch_max = batch;
    return made;
  }
  const serve::Operator op_ = operators::light({.query_bytes = 64, .steps = 8});
};

TEST_P(Caller, HasNoThread) {
  EXPECT_EQ(plan().host_threads(), 0U);
  EXPECT_TRUE(is_threadless(Schedule::caller));
  Engine engine(device(), op_, plan());
  Client client = engine.connect();
  EXPECT_TRUE(client.answers_itself());
  ASSERT_OK(client.submit(query_of(op_, 1)));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(engine.statistics().answered, 0U);
  EXPECT_FALSE(engine.drain(milliseconds(1)));
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_OK(done.status); }), 1U);
  EXPECT_EQ(engine.statistics().answered, 1U);
  EXPECT_TRUE(engine.drain(Duration::zero()));
}

TEST_P(Caller, PollAnswersNoMoreBatchesThanItReports) {
  Engine engine(device(), op_, plan(64, 8));
  Client client = engine.connect();
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_OK(client.submit(query_of(op_, i), {.tag = i}));
  std::uint64_t next = 0;
  const auto check = [&](const Completion& done) {
    EXPECT_EQ(done.tag, next);
    const auto expected = answer_of(op_, query_of(op_, next++));
    EXPECT_TRUE(std::ranges::equal(done.answer, expected));
  };
  EXPECT_EQ(client.poll(check, 3), 3U);
  EXPECT_EQ(engine.statistics().answered, 8U);
  EXPECT_EQ(client.poll(check, 5), 5U);
  EXPECT_EQ(engine.statistics().answered, 8U);
  EXPECT_EQ(client.poll(check), 12U);
  EXPECT_EQ(client.in_flight(), 0U);
}

TEST_P(Caller, WaitAnswersUpToTheTicket) {
  Engine engine(device(), op_, plan(64, 4));
  Client client = engine.connect();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(client.submit(query_of(op_, i), {.tag = i}));
  EXPECT_FALSE(*client.wait(9, Duration::zero()));  // it forms one batch, whose limit has passed
  EXPECT_EQ(engine.statistics().answered, 4U);
  EXPECT_TRUE(*client.wait(5));
  EXPECT_EQ(engine.statistics().answered, 8U);
  EXPECT_TRUE(*client.wait(9));
  EXPECT_EQ(outcomes(client).size(), 10U);
}

TEST_P(Caller, LateAndCancelledQueriesAreNotRun) {
  Engine engine(device(), op_, plan());
  Client client = engine.connect();
  ASSERT_OK(client.submit(query_of(op_, 1), {.tag = 1, .deadline = Time{1}}));
  const auto cancelled = client.submit(query_of(op_, 2), {.tag = 2});
  ASSERT_OK(cancelled);
  ASSERT_OK(client.submit(query_of(op_, 3), {.tag = 3, .deadline = SteadyClock::now() + hours(1)}));
  client.cancel(*cancelled);
  const auto back = outcomes(client);
  ASSERT_EQ(back.size(), 3U);
  EXPECT_TRUE(failed_with(back.at(1), Errc::deadline_exceeded));
  EXPECT_TRUE(failed_with(back.at(2), Errc::cancelled));
  EXPECT_OK(back.at(3));
  const serve::EngineStatistics statistics = engine.statistics();
  EXPECT_EQ(statistics.answered, 1U);
  EXPECT_EQ(statistics.expired, 1U);
  EXPECT_EQ(statistics.cancelled, 1U);
}

TEST_P(Caller, AFullLaneRefusesUntilItIsPolled) {
  Engine engine(device(), op_, plan(4));
  Client client = engine.connect();
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_OK(client.submit(query_of(op_, i)));
  EXPECT_TRUE(failed_with(client.submit(query_of(op_, 4)), Errc::full));
  EXPECT_EQ(client.poll([](const Completion&) {}), 4U);
  ASSERT_NO_FATAL_FAILURE(exchange(client, op_, 10, 40));
}

TEST_P(Caller, AnEventLoopIsWokenAtOnce) {
  Engine engine(device(), op_, plan());
  Client client = engine.connect();
  EventDescriptor event;
  ASSERT_OK(client.submit(query_of(op_, 1)));
  client.wake(event.get());
  EXPECT_TRUE(event.clear());
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_OK(done.status); }), 1U);
}

TEST_P(Caller, WhatIsInFlightComesBackWhenTheEngineStops) {
  Engine engine(device(), op_, plan());
  Client client = engine.connect();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(client.submit(query_of(op_, i), {.tag = i}));
  engine.stop();
  const auto back = outcomes(client);
  ASSERT_EQ(back.size(), 10U);
  for (const auto& [tag, status] : back) EXPECT_TRUE(failed_with(status, Errc::stopped));
  EXPECT_TRUE(failed_with(client.submit(query_of(op_, 1)), Errc::stopped));
}

TEST_P(Caller, ALeavingClientAnswersWhatItHasSubmitted) {
  Engine engine(device(), op_, plan());
  {
    Client client = engine.connect();
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(client.submit(query_of(op_, i), {.tag = i}));
  }
  EXPECT_EQ(engine.statistics().answered, 10U);
  Client next = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(next, op_, 1, 10));
}

TEST_P(Caller, ClientsOfSeveralThreadsAnswerAtTheSameTimeWhileTheEngineStops) {
  Engine engine(device(), op_, plan(16, 8));
  std::atomic<std::uint64_t> back{0};
  std::atomic<std::uint64_t> submitted{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      Client client = engine.connect();
      for (std::uint64_t i = number;; ++i) {
        const auto ticket = client.submit(query_of(op_, i), {.tag = i});
        if (ticket) {
          submitted.fetch_add(1);
        } else if (ticket.error().code == Errc::stopped) {
          break;
        }
        if (!ticket || i % 3 == 0) {
          back.fetch_add(client.poll([&](const Completion& done) {
            if (done.status) {
              EXPECT_TRUE(std::ranges::equal(done.answer, answer_of(op_, query_of(op_, done.tag))));
            } else {
              EXPECT_TRUE(failed_with(done.status, Errc::stopped));
            }
          }));
        }
      }
      while (client.in_flight() > 0) back.fetch_add(client.poll([](const Completion&) {}));
    });
  }
  std::this_thread::sleep_for(milliseconds(50));
  engine.stop();
  threads.clear();
  EXPECT_EQ(back.load(), submitted.load());
  EXPECT_GT(engine.statistics().answered, 0U);
}

TEST_P(Caller, ABatchDoesNotWaitToFill) {
  Plan waits = plan();
  waits.batch_age = milliseconds(1);
  EXPECT_THROW(Engine(device(), op_, waits), UsageError);
}

HEADRACE_ON_EVERY_DEVICE(Caller);

}  // namespace
}  // namespace headrace::testing
