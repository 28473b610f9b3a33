#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "headrace/operators/light.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"

/// Deadlines that pass while a query waits behind a long one, or while it runs. The client is told at once, each query
/// comes back once, and its slot is reused only when no work on it is left.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Completion;
using serve::Engine;
using serve::EngineStatistics;
using serve::Operator;
using serve::Plan;
using serve::Schedule;
using serve::Ticket;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Schedule kSchedules[] = {Schedule::blocking, Schedule::pipelined,  Schedule::async,
                                   Schedule::graph,    Schedule::persistent, Schedule::dispatched};

/// A plan that runs one query at a time.
Plan serial_plan(Schedule schedule, std::uint32_t slots) {
  Plan plan = plan_of(schedule);
  plan.slots = slots;
  plan.host_memory = MemoryKind::mapped;
  plan.workers = schedule == Schedule::dispatched ? 1 : 0;
  plan.hang_after = hours(1);
  return plan;
}

struct Back {
  std::uint64_t tag;
  Status status;
};

std::vector<Back> poll(Client& client, std::size_t most = 64) {
  std::vector<Back> back;
  client.poll([&](const Completion& done) { back.push_back({done.tag, done.status}); }, most);
  return back;
}

/// Submits a query whose deadline passes while the query is at the gate, and waits until the client has seen that it is
/// late.
void submit_until_late_at(QueryGate& gate, Engine& engine, Client& client) {
  for (Duration limit = milliseconds(50); !gate.entered(); limit *= 2) {
    const auto ticket = client.submit(query_of(engine.op(), 1), {.deadline = SteadyClock::now() + limit});
    ASSERT_OK(ticket);
    EXPECT_TRUE(*client.wait(*ticket));
    const auto back = poll(client);
    ASSERT_EQ(back.size(), 1U);
    EXPECT_TRUE(failed_with(back[0].status, Errc::deadline_exceeded));
    // On a busy machine the deadline may have passed before.
    while (!gate.entered() && !engine.drain(milliseconds(1))) {
    }
  }
}

class Deadlines : public ::testing::TestWithParam<Schedule> {
 protected:
  [[nodiscard]] Engine engine(const Operator& op, std::uint32_t slots) const {
    return Engine(Device::parse("cpu"), op, serial_plan(GetParam(), slots));
  }
};

TEST_P(Deadlines, AQueryBehindALongOneComesBackAtItsDeadline) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 4);
  Client client = engine.connect();
  ASSERT_OK(client.submit(query_of(op, 1), {.tag = 1}));
  gate.wait_until_entered();
  const Time deadline = SteadyClock::now() + milliseconds(20);
  ASSERT_OK(client.submit(query_of(op, 2), {.tag = 2}));
  const auto late = client.submit(query_of(op, 3), {.tag = 3, .deadline = deadline});
  ASSERT_OK(late);
  EXPECT_TRUE(*client.wait(*late));  // no time limit: the gate is closed
  EXPECT_GT(SteadyClock::now(), deadline);
  const auto back = poll(client);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].tag, 3U);
  EXPECT_TRUE(failed_with(back[0].status, Errc::deadline_exceeded));
  EXPECT_EQ(client.in_flight(), 2U);
  EXPECT_EQ(client.oldest(), 0U);
  EXPECT_TRUE(*client.wait(*late));
  EXPECT_FALSE(*client.wait(0, milliseconds(1)));
  EXPECT_TRUE(poll(client).empty());
  client.cancel(*late);  // it has come back
  gate.open();
  const auto others = outcomes(client);
  ASSERT_EQ(others.size(), 2U);
  EXPECT_OK(others.at(1));
  EXPECT_OK(others.at(2));
  ASSERT_TRUE(engine.drain(seconds(60)));
  const EngineStatistics statistics = engine.statistics();
  EXPECT_EQ(statistics.answered, 2U);
  EXPECT_EQ(statistics.expired, 1U);
  EXPECT_EQ(statistics.cancelled + statistics.failed, 0U);
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 10, 20));
}

TEST_P(Deadlines, AQueryThatIsWorkedOnComesBackAtItsDeadline) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 4);
  {
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(submit_until_late_at(gate, engine, client));
    EXPECT_EQ(client.in_flight(), 0U);
    EXPECT_FALSE(engine.drain(milliseconds(5)));  // the device still runs it
    gate.open();
  }  // the engine returns the lane once the device is done
  EXPECT_TRUE(engine.drain(Duration::zero()));
  EXPECT_EQ(engine.statistics().expired, engine.statistics().submitted);
  Client next = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(next, op, 10, 20));
}

TEST_P(Deadlines, SlotsOfLateQueriesAreTakenUntilTheyAreDone) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 2);
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(submit_until_late_at(gate, engine, client));
  ASSERT_OK(client.submit(query_of(op, 2), {.deadline = SteadyClock::now()}));
  while (client.in_flight() > 0) {
    for (const Back& back : poll(client, 1)) EXPECT_TRUE(failed_with(back.status, Errc::deadline_exceeded));
  }
  EXPECT_EQ(client.submit(query_of(op, 3)).error().code, Errc::full);
  std::vector<std::byte> answer(op.answer_bytes);
  EXPECT_TRUE(failed_with(client.ask(query_of(op, 3), answer), Errc::full));
  gate.open();
  ASSERT_TRUE(engine.drain(seconds(60)));
  ASSERT_OK(client.ask(query_of(op, 4), answer));
  EXPECT_EQ(answer, answer_of(op, query_of(op, 4)));
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 10, 20));
}

TEST_P(Deadlines, AskReturnsAtItsDeadlineBehindAnotherClient) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 4);
  Client first = engine.connect();
  Client second = engine.connect();
  ASSERT_OK(first.submit(query_of(op, 1)));
  gate.wait_until_entered();
  std::vector<std::byte> answer(op.answer_bytes);
  for (int i = 0; i < 3; ++i) {
    const Time deadline = SteadyClock::now() + milliseconds(2);
    EXPECT_TRUE(failed_with(second.ask(query_of(op, 2), answer, {.deadline = deadline}), Errc::deadline_exceeded));
  }
  EXPECT_FALSE(*first.wait(0, Duration::zero()));
  gate.open();
  ASSERT_OK(second.ask(query_of(op, 5), answer, {.deadline = SteadyClock::now() + hours(1)}));
  EXPECT_EQ(answer, answer_of(op, query_of(op, 5)));
  EXPECT_OK(outcomes(first).at(0));
}

/// A query that a callback submits becomes late as well. The callback runs once for each late query.
TEST_P(Deadlines, ACallbackMaySubmit) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 8);
  Client client = engine.connect();
  ASSERT_OK(client.submit(query_of(op, 1), {.tag = 1}));
  gate.wait_until_entered();
  ASSERT_OK(client.submit(query_of(op, 2), {.tag = 2, .deadline = Time{1}}));
  std::vector<std::uint64_t> late;
  client.poll([&](const Completion& done) {
    late.push_back(done.tag);
    EXPECT_TRUE(failed_with(done.status, Errc::deadline_exceeded));
    if (late.size() == 4) return;
    ASSERT_OK(client.submit(query_of(op, 3), {.tag = done.tag + 1, .deadline = Time{1}}));
  });
  EXPECT_EQ(late, (std::vector<std::uint64_t>{2, 3, 4, 5}));
  gate.open();
  EXPECT_OK(outcomes(client).at(1));
}

/// Deadlines are about as long as a query takes, so some are met: each query comes back once, with the right answer or
/// late.
TEST_P(Deadlines, EveryQueryComesBackOnceUnderDeadlinesThatAreNearlyMet) {
  const Operator op = operators::light({.steps = 200});
  Engine engine = this->engine(op, 16);
  constexpr std::uint64_t kQueries = 1000;
  std::atomic<std::uint64_t> answered{0};
  const auto run = [&](std::uint64_t seed) {
    Client client = engine.connect();
    std::mt19937_64 random(seed);
    std::vector<int> seen(kQueries);
    std::uint64_t sent = 0;
    std::uint64_t back = 0;
    while (back < kQueries) {
      const auto limit = std::chrono::microseconds(random() % 200);
      const Time deadline = random() % 4 == 0 ? Time::max() : SteadyClock::now() + limit;
      if (sent < kQueries && client.submit(query_of(op, sent), {.tag = sent, .deadline = deadline})) ++sent;
      if (random() % 8 == 0 && client.in_flight() > 0) static_cast<void>(client.wait(client.oldest()));
      client.poll([&](const Completion& done) {
        ++back;
        ++seen[done.tag];
        if (done.status) {
          ++answered;
          EXPECT_TRUE(std::ranges::equal(done.answer, answer_of(op, query_of(op, done.tag))));
        } else {
          EXPECT_EQ(done.status.error().code, Errc::deadline_exceeded);
        }
      });
    }
    EXPECT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(kQueries));
  };
  {
    const std::jthread other(run, 2);
    run(1);
  }
  ASSERT_TRUE(engine.drain(seconds(60)));
  const EngineStatistics statistics = engine.statistics();
  EXPECT_EQ(statistics.answered + statistics.expired, 2 * kQueries);
  EXPECT_EQ(statistics.failed + statistics.cancelled, 0U);
  EXPECT_GE(answered, 1U);
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 50));
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, Deadlines, ::testing::ValuesIn(kSchedules),
                         [](const auto& schedule) { return std::string(to_string(schedule.param)); });

}  // namespace
}  // namespace headrace::testing
