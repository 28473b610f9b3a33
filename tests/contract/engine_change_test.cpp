#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/operators/light.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/every_plan.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"

/// Bounds of engines that change while queries are in flight. Shares are in dispatched_test.cpp.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Engine;
using serve::EngineStatistics;
using serve::Operator;
using serve::Plan;
using serve::PlanChange;
using serve::Schedule;
using std::chrono::hours;
using std::chrono::milliseconds;

class EngineChange : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(EngineChange);

TEST_P(EngineChange, LosesNoQueryUnderAnyPlan) {
  constexpr std::size_t kQueries = 600;
  constexpr std::uint32_t kChangesLeast = 200;
  const Operator op = operators::light({.query_bytes = 64});
  for (Plan plan : every_plan()) {
    SCOPED_TRACE(says_of(plan));
    plan.clients_max = 2;
    Engine engine(device(), op, plan);
    std::atomic<std::uint32_t> asking{2};
    std::vector<std::jthread> askers;
    for (std::uint64_t c = 0; c < 2; ++c) {
      askers.emplace_back([&, c, client = engine.connect()]() mutable {
        exchange(client, op, kQueries * c, kQueries);
        --asking;
      });
    }
    std::uint32_t changes = 0;
    while (asking > 0 || changes < kChangesLeast) {
      const std::uint32_t most = changes % 33;  // 0: all 32
      const Duration bound = changes % 3 == 0 ? Duration::zero() : Duration(hours(1));
      engine.change({.in_flight_max = most, .latency_max = bound});
      ASSERT_EQ(engine.plan().in_flight_max, most);
      ASSERT_EQ(engine.plan().latency_max, bound);
      ++changes;
    }
    askers.clear();
    const EngineStatistics statistics = engine.statistics();
    EXPECT_EQ(statistics.submitted, 2 * kQueries);
    EXPECT_EQ(statistics.answered, 2 * kQueries);
  }
}

TEST_P(EngineChange, TakesNoMoreQueriesThanTheLimit) {
  for (const Schedule schedule : {Schedule::blocking, Schedule::dispatched, Schedule::caller, Schedule::none}) {
    SCOPED_TRACE(to_string(schedule));
    const Operator op = operators::light({.query_bytes = 64});
    Plan plan = plan_of(schedule);
    plan.host_memory = MemoryKind::mapped;
    plan.in_flight_max = 5;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    std::uint64_t tag = 0;
    const auto submit_all = [&] {  // nothing is polled meanwhile, so every query keeps its slot
      std::size_t taken = 0;
      while (true) {
        const auto ticket = client.submit(query_of(op, tag), {.tag = tag});
        if (!ticket) {
          EXPECT_EQ(ticket.error().code, Errc::full);
          return taken;
        }
        ++taken;
        ++tag;
      }
    };
    EXPECT_EQ(submit_all(), 5U);
    engine.change({.in_flight_max = 9});
    EXPECT_EQ(submit_all(), 4U);
    engine.change({.in_flight_max = 2});
    EXPECT_EQ(submit_all(), 0U);
    EXPECT_EQ(client.in_flight(), 9U);  // those beyond the limit stay
    EXPECT_EQ(outcomes(client).size(), 9U);
    EXPECT_EQ(submit_all(), 2U);
    engine.change({.in_flight_max = 0});
    EXPECT_EQ(submit_all(), plan.slots - 2);
  }
}

TEST_P(EngineChange, RefusesWhatAPlanCannotHave) {
  const Operator op = operators::light({.query_bytes = 64});
  Plan plan = plan_of(Schedule::blocking);
  plan.in_flight_max = 3;
  plan.latency_max = milliseconds(70'000);
  Engine engine(device(), op, plan);
  const auto says = [&](const PlanChange& change) -> std::string {
    try {
      engine.change(change);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(says({.in_flight_max = 65, .latency_max = milliseconds(1)}),
            "plan: in_flight_max must be at most the 64 slots, not 65");
  EXPECT_EQ(says({.in_flight_max = 1, .latency_max = milliseconds(-1)}), "plan: latency_max must be 0 to 3600 seconds");
  EXPECT_EQ(says({.latency_max = Duration::max()}), "plan: latency_max must be 0 to 3600 seconds");
  EXPECT_EQ(says({.share = 0.5, .in_flight_max = 1}),
            "plan: share is available with schedule 'dispatched', not with 'blocking'");
  for (const double share : {0.0, -1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(says({.share = share}).starts_with("plan: share must be above 0 and at most 1")) << share;
  }
  EXPECT_EQ(engine.plan().in_flight_max, 3U);
  EXPECT_EQ(engine.plan().latency_max, plan.latency_max);
  EXPECT_EQ(says({.share = 1}), "nothing");  // it has that
  EXPECT_EQ(says({}), "nothing");
  engine.stop();
  try {
    engine.change({.in_flight_max = 1});
    ADD_FAILURE() << "an engine that has stopped was changed";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
  }
}

TEST(EngineChangeOnTheCpu, ABoundHoldsForQueriesThatComeAfterIt) {
  for (const Schedule schedule : {Schedule::blocking, Schedule::pipelined, Schedule::dispatched}) {
    SCOPED_TRACE(to_string(schedule));
    QueryGate gate;
    const Operator op = gated_operator(gate);
    Plan plan = plan_of(schedule);
    plan.host_memory = MemoryKind::mapped;
    plan.hang_after = hours(1);
    Engine engine(Device::parse("cpu"), op, plan);
    Client client = engine.connect();
    const auto submit = [&](std::uint64_t tag, Time deadline = Time::max()) {
      ASSERT_TRUE(client.submit(query_of(op, tag), {.tag = tag, .deadline = deadline}).ok());
    };
    submit(1);
    gate.wait_until_entered();
    engine.change({.latency_max = milliseconds(30)});
    submit(2);
    submit(3, SteadyClock::now() + hours(1));  // a later deadline does not help
    engine.change({.latency_max = Duration::zero()});
    submit(4);
    submit(5, SteadyClock::now() + milliseconds(1));  // an earlier one holds under any bound
    std::map<std::uint64_t, Status> late;
    while (late.size() < 3) {
      client.poll([&](const serve::Completion& done) { late.emplace(done.tag, done.status); });
    }
    for (const std::uint64_t tag : {2U, 3U, 5U}) {
      ASSERT_TRUE(late.contains(tag)) << tag;
      EXPECT_EQ(late.at(tag).error().code, Errc::deadline_exceeded);
    }
    EXPECT_EQ(client.in_flight(), 2U);
    gate.open();
    const std::map<std::uint64_t, Status> back = outcomes(client);
    ASSERT_EQ(back.size(), 2U);
    EXPECT_TRUE(back.at(1).ok());
    EXPECT_TRUE(back.at(4).ok());
  }
}

TEST(EngineChangeOnTheCpu, SlotsOfLateQueriesCountTowardsTheLimit) {
  for (const Schedule schedule : {Schedule::blocking, Schedule::dispatched}) {
    SCOPED_TRACE(to_string(schedule));
    QueryGate gate;
    const Operator op = gated_operator(gate);
    Plan plan = plan_of(schedule);
    plan.host_memory = MemoryKind::mapped;
    plan.in_flight_max = 1;
    plan.hang_after = hours(1);
    plan.latency_max = milliseconds(200);
    Engine engine(Device::parse("cpu"), op, plan);
    Client client = engine.connect();
    ASSERT_TRUE(client.submit(query_of(op, 1), {.tag = 1}).ok());
    // A query that is late before it is worked on would be dropped. This one is late, but keeps its slot.
    ASSERT_TRUE(eventually([&] { return gate.entered(); }));
    EXPECT_EQ(outcomes(client).size(), 1U);
    EXPECT_EQ(client.submit(query_of(op, 3)).error().code, Errc::full);
    engine.change({.in_flight_max = 2, .latency_max = Duration::zero()});
    ASSERT_TRUE(client.submit(query_of(op, 4), {.tag = 4}).ok());
    gate.open();
    EXPECT_TRUE(outcomes(client).at(4).ok());
  }
}

}  // namespace
}  // namespace headrace::testing
