#include <thread>

#include "headrace/operators/light.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"

/// Batches: when they close, and that each of their queries is answered separately.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MemoryKind kHostMemories[] = {MemoryKind::pinned, MemoryKind::mapped};

class Batching : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(Batching);

/// Calls `run(plan)` for every schedule and way of gathering.
template <class Run>
void for_each_plan(Run run) {
  for (const Schedule schedule : kCallingSchedules) {
    for (const MemoryKind memory : kHostMemories) {
      SCOPED_TRACE(::testing::Message() << to_string(schedule) << " " << to_string(memory));
      Plan plan = plan_of(schedule, 1, 2);
      plan.host_memory = memory;
      plan.batch_max = 4;
      run(plan);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(Batching, AFullBatchClosesAtOnce) {
  const Operator op = operators::light();
  for_each_plan([&](Plan plan) {
    plan.batch_age = hours(1);
    Engine engine(device(), op, plan);
    Client a = engine.connect();
    Client b = engine.connect();
    ASSERT_OK(a.submit(query_of(op, 1)));
    ASSERT_OK(a.submit(query_of(op, 2)));
    ASSERT_OK(b.submit(query_of(op, 3)));
    EXPECT_FALSE(*b.wait(0, milliseconds(5)));  // three queries are held
    ASSERT_OK(b.submit(query_of(op, 4)));
    EXPECT_TRUE(*a.wait(1));
    EXPECT_TRUE(*b.wait(1));
    EXPECT_EQ(engine.statistics().answered, 4U);
  });
}

TEST_P(Batching, AgeClosesABatchThatIsNotFull) {
  const Operator op = operators::light();
  for_each_plan([&](Plan plan) {
    plan.batch_age = milliseconds(200);  // the second query comes sooner, even on a busy machine
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    const Time began = SteadyClock::now();
    ASSERT_OK(client.submit(query_of(op, 1)));
    ASSERT_OK(client.submit(query_of(op, 2)));
    EXPECT_TRUE(*client.wait(1));
    EXPECT_GE(SteadyClock::now() - began, plan.batch_age);
    EXPECT_EQ(engine.statistics().answered, 2U);
  });
}

TEST_P(Batching, StoppingAnswersABatchThatIsHeld) {
  const Operator op = operators::light();
  for_each_plan([&](Plan plan) {
    plan.batch_age = hours(1);
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_OK(client.submit(query_of(op, 1), {.tag = 1}));
    ASSERT_OK(client.submit(query_of(op, 2), {.tag = 2}));
    engine.stop();
    const auto back = outcomes(client);
    ASSERT_EQ(back.size(), 2U);
    for (const auto& [tag, status] : back) EXPECT_TRUE(failed_with(status, Errc::stopped)) << tag;
  });
}

TEST_P(Batching, CancelledAndLateQueriesLeaveTheirNeighboursAlone) {
  const Operator op = operators::light();
  for_each_plan([&](Plan plan) {
    plan.batch_age = hours(1);
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_OK(client.submit(query_of(op, 0), {.tag = 0}));
    const auto cancelled = client.submit(query_of(op, 1), {.tag = 1});
    ASSERT_OK(cancelled);
    ASSERT_OK(client.submit(query_of(op, 2), {.tag = 2, .deadline = SteadyClock::now()}));
    client.cancel(*cancelled);
    ASSERT_OK(client.submit(query_of(op, 3), {.tag = 3, .deadline = SteadyClock::now() + hours(1)}));
    const auto back = outcomes(client);
    ASSERT_EQ(back.size(), 4U);
    EXPECT_OK(back.at(0));
    EXPECT_TRUE(failed_with(back.at(1), Errc::cancelled));
    EXPECT_TRUE(failed_with(back.at(2), Errc::deadline_exceeded));
    EXPECT_OK(back.at(3));
    EXPECT_EQ(engine.statistics().cancelled, 1U);
    EXPECT_EQ(engine.statistics().expired, 1U);
  });
}

TEST_P(Batching, ABatchOfWhichNothingIsLeftIsNoWork) {
  const Operator op = operators::light();
  for_each_plan([&](Plan plan) {
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    for (int i = 0; i < 9; ++i) ASSERT_OK(client.submit(query_of(op, 1), {.deadline = Time{1}}));
    while (client.in_flight() > 0) {
      client.poll(
          [](const serve::Completion& done) { EXPECT_TRUE(failed_with(done.status, Errc::deadline_exceeded)); });
    }
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 20));
  });
}

TEST_P(Batching, ALoneQueryIsNotHeldWithoutAnAge) {
  const Operator op = operators::light();
  for_each_plan([&](const Plan& plan) {
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 10, 1));
  });
}

// The device is held at the first batch, so the queries of the second, from several clients, are taken together.
TEST(BatchingOnCpu, ADeadlineThatPassesDuringTheWorkFailsOnlyItsQuery) {
  for (const Schedule schedule : kCallingSchedules) {
    SCOPED_TRACE(to_string(schedule));
    QueryGate gate;
    const Operator op = gated_operator(gate);
    Plan plan = plan_of(schedule);
    plan.batch_max = 3;
    plan.batch_age = hours(1);
    Engine engine(Device::parse("cpu"), op, plan);
    Client client = engine.connect();
    const Time deadline = SteadyClock::now() + seconds(1);  // longer than a busy machine needs to get there
    ASSERT_OK(client.submit(query_of(op, 1), {.tag = 1}));
    ASSERT_OK(client.submit(query_of(op, 2), {.tag = 2, .deadline = deadline}));
    ASSERT_OK(client.submit(query_of(op, 3), {.tag = 3, .deadline = deadline + hours(1)}));
    gate.wait_until_entered();
    while (SteadyClock::now() <= deadline) std::this_thread::yield();
    gate.open();
    const auto back = outcomes(client);
    ASSERT_EQ(back.size(), 3U);
    EXPECT_OK(back.at(1));
    EXPECT_TRUE(failed_with(back.at(2), Errc::deadline_exceeded));
    EXPECT_OK(back.at(3));
  }
}

}  // namespace
}  // namespace headrace::testing
