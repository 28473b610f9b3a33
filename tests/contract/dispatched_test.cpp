#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/resident_operators.hpp"

namespace headrace::serve {
namespace {

using headrace::testing::answer_of;
using headrace::testing::exchange;
using headrace::testing::query_of;
using headrace::testing::uneven_operator;
using std::chrono::milliseconds;

Plan dispatched(std::uint32_t slots) {
  Plan plan;
  plan.schedule = Schedule::dispatched;
  plan.host_memory = MemoryKind::mapped;
  plan.slots = slots;
  plan.sample_stages_every = 4;
  return plan;
}

/// The plan without and with answer_inline, for operators that support it.
std::array<Plan, 2> both(std::uint32_t slots) {
  std::array<Plan, 2> plans{dispatched(slots), dispatched(slots)};
  plans[1].answer_inline = true;
  return plans;
}

class Dispatched : public headrace::testing::DeviceTest {};

TEST_P(Dispatched, SealedAnswersComeOnceAndRight) {
  for (const Plan& plan : both(32)) {
    for (const std::uint32_t bytes : {4U, 64U, 1024U, 4096U}) {
      SCOPED_TRACE(::testing::Message() << bytes << (plan.answer_inline ? " inline" : ""));
      const Operator op = operators::light({.query_bytes = bytes});
      Engine engine(device(), op, plan);
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 100, 300));
      const EngineStatistics statistics = engine.statistics();
      EXPECT_EQ(statistics.submitted, 300U);
      EXPECT_EQ(statistics.answered, 300U);
      EXPECT_EQ(statistics.stages.samples, 75U);
    }
  }
}

TEST_P(Dispatched, AnswersThatAreNoWholeWordsComeBackWhole) {
  for (const std::uint32_t blocks : {1U, 3U}) {
    SCOPED_TRACE(blocks);
    const Operator op = uneven_operator(blocks);
    Engine engine(device(), op, dispatched(16));
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100));
  }
  Engine engine(device(), uneven_operator(1), both(16)[1]);
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, uneven_operator(1), 1, 100));
}

TEST_P(Dispatched, SeveralBlocksShareAQuery) {
  for (const std::uint32_t answer_bytes : {8U, 100U, 700U}) {
    SCOPED_TRACE(answer_bytes);
    const Operator op = operators::reference(
        {.query_bytes = 512, .answer_bytes = answer_bytes, .blocks = 3, .threads = 96, .steps = 50});
    Engine engine(device(), op, dispatched(16));
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100));
    EXPECT_GT(engine.statistics().stages.kernel, Duration::zero());
  }
}

TEST_P(Dispatched, OneBlockWritesLongAnswersInPlace) {
  const Operator op =
      operators::reference({.query_bytes = 512, .answer_bytes = 700, .blocks = 1, .threads = 96, .steps = 50});
  Engine engine(device(), op, dispatched(16));
  Client client = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100));
}

TEST_P(Dispatched, ManyClientsGetTheirOwnAnswers) {
  const Operator op = operators::light();
  for (Plan plan : both(8)) {
    plan.clients_max = 5;
    Engine engine(device(), op, plan);
    std::vector<std::jthread> threads;
    for (std::uint64_t c = 0; c < plan.clients_max; ++c) {
      threads.emplace_back([&, c, client = engine.connect()]() mutable { exchange(client, op, 1000 * c, 200); });
    }
    threads.clear();
    EXPECT_EQ(engine.statistics().answered, 1000U);
  }
}

TEST_P(Dispatched, QueriesThatComeAloneAreAnsweredInOrOutOfTheQueue) {
  const Operator op = operators::light();
  for (const Plan& plan : both(4)) {
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    std::vector<std::byte> answer(op.answer_bytes);
    for (std::uint64_t number = 0; number < 200; ++number) {
      const auto query = query_of(op, number);
      const Time quiet = SteadyClock::now() + std::chrono::microseconds(20);
      while (SteadyClock::now() < quiet) std::this_thread::yield();
      ASSERT_TRUE(client.ask(query, answer));
      ASSERT_EQ(answer, answer_of(op, query)) << "query " << number;
      if (number % 50 == 49) {  // with a burst between them
        ASSERT_NO_FATAL_FAILURE(exchange(client, op, number, 20));
      }
    }
    EXPECT_EQ(engine.statistics().stages.samples, 70U);
  }
}

TEST_P(Dispatched, QueriesOfAnyLengthAreReadBeforeTheirTails) {
  for (const std::uint32_t bytes : {4U, 12U, 64U, 1000U, 1024U, 2048U, 2052U}) {
    for (const std::uint32_t threads : {32U, 64U, 128U}) {
      SCOPED_TRACE(::testing::Message() << bytes << " bytes, " << threads << " threads");
      const Operator op = operators::light({.query_bytes = bytes});
      Plan plan = both(4)[1];
      plan.block_threads = threads;
      Engine engine(device(), op, plan);
      Client one = engine.connect();
      Client other = engine.connect();
      std::vector<std::byte> answer(op.answer_bytes);
      for (std::uint64_t i = 0; i < 30; ++i) {
        const auto query = query_of(op, i);
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that block 0 looks for one
        ASSERT_TRUE((i % 7 == 6 ? other : one).ask(query, answer));
        ASSERT_EQ(answer, answer_of(op, query)) << i;
      }
    }
  }
}

TEST_P(Dispatched, ALaneGoesOnWhereItsLastClientStopped) {
  const Operator op = operators::light();
  Plan plan = dispatched(8);
  plan.clients_max = 1;
  Engine engine(device(), op, plan);
  for (std::uint64_t round = 0; round < 3; ++round) {
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 10 * round, 13));
  }
}

TEST_P(Dispatched, AFullLaneRefuses) {
  const Operator op = operators::light();
  Plan plan = dispatched(4);
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.submit(query_of(op, 1)));
  EXPECT_EQ(client.submit(query_of(op, 1)).error().code, Errc::full);
  EXPECT_EQ(client.submit(std::vector<std::byte>(3)).error().code, Errc::invalid_argument);
  for (Ticket ticket = 0; ticket < 4; ++ticket) ASSERT_TRUE(*client.wait(ticket));  // blocks may overtake each other
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_TRUE(done.status); }), 4U);
  EXPECT_EQ(engine.statistics().refused, 1U);
}

TEST_P(Dispatched, AskWaitsForItsAnswer) {
  const Operator op = operators::light();
  Engine engine(device(), op, dispatched(4));
  Client client = engine.connect();
  const auto query = query_of(op, 5);
  std::vector<std::byte> answer(op.answer_bytes);
  ASSERT_TRUE(client.ask(query, answer));
  EXPECT_EQ(answer, answer_of(op, query));
}

TEST_P(Dispatched, CancelledAndLateQueriesComeBackAsSuch) {
  const Operator op = operators::light({.steps = 1U << 20});
  for (Plan plan : both(8)) {
    plan.hang_after = std::chrono::minutes(1);  // under a sanitizer on a busy machine, a query takes seconds
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    const auto query = query_of(op, 1);
    ASSERT_TRUE(client.submit(query, {.deadline = SteadyClock::now() - milliseconds(1)}));
    const auto second = client.submit(query);
    ASSERT_TRUE(second);
    client.cancel(*second);
    ASSERT_TRUE(client.submit(query, {.deadline = SteadyClock::now() + std::chrono::hours(1)}));
    std::vector<Status> back;
    while (back.size() < 3) client.poll([&](const Completion& done) { back.push_back(done.status); });
    EXPECT_EQ(back[0].error().code, Errc::deadline_exceeded);
    EXPECT_EQ(back[1].error().code, Errc::cancelled);
    EXPECT_TRUE(back[2]);
    const EngineStatistics statistics = engine.statistics();
    EXPECT_EQ(statistics.cancelled, 1U);
    EXPECT_EQ(statistics.expired, 1U);
    EXPECT_EQ(statistics.answered, 1U);
  }
}

TEST_P(Dispatched, RefusesWhatCannotWork) {
  const Operator op = operators::light();
  Plan plan = dispatched(8);
  plan.host_memory = MemoryKind::pinned;
  EXPECT_THROW(Engine(device(), op, plan), UsageError);
  plan = dispatched(8);
  plan.workers = 1'000'000;
  EXPECT_THROW(Engine(device(), op, plan), UsageError);
  plan = dispatched(8);
  plan.clients_max = 257;
  EXPECT_THROW(Engine(device(), op, plan), UsageError);
  plan = dispatched(8);
  plan.blocks = 1U << 22;  // more parts in half a queue than 32 bits can count
  EXPECT_THROW(Engine(device(), op, plan), UsageError);
}

TEST_P(Dispatched, RefusesToAnswerInlineWhatItCannot) {
  const auto says = [](const Operator& op, const Plan& plan) -> std::string {
    try {
      const Engine engine(device(), op, plan);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  Plan plan = both(8)[1];
  EXPECT_EQ(says(operators::light(), plan), "nothing");
  EXPECT_EQ(says(operators::reference({.blocks = 1}), plan),
            "plan: operator reference has no pool_inline, which answer_inline needs");
  EXPECT_EQ(says(uneven_operator(3), plan), "plan: answer_inline needs 1 block per query, not 3");
  plan.blocks = 2;
  EXPECT_EQ(says(operators::light(), plan), "plan: answer_inline needs 1 block per query, not 2");
  plan.blocks = 0;
  plan.schedule = Schedule::persistent;
  EXPECT_EQ(says(operators::light(), plan),
            "plan: answer_inline is available with schedule 'dispatched', not with 'persistent'");
}

TEST_P(Dispatched, EnginesThatShareADeviceAnswerAtTheSameTime) {
  Plan half = dispatched(32);
  half.share = 0.5;
  const Operator light = operators::light({.query_bytes = 64});
  const Operator reference = operators::reference({.blocks = 2, .threads = 32});
  Engine first(device(), light, half);
  Engine second(device(), reference, half);
  Client to_first = first.connect();
  Client to_second = second.connect();
  {
    const std::jthread beside([&] { exchange(to_first, light, 0, 400); });
    ASSERT_NO_FATAL_FAILURE(exchange(to_second, reference, 0, 100));
  }
  EXPECT_EQ(first.statistics().answered, 400U);
  EXPECT_EQ(second.statistics().answered, 100U);
  if (device().properties().host_cores) return;  // it has threads for every block
  for (const double share : {0.5, 1.0}) {
    Plan more = half;
    more.share = share;
    try {
      const Engine third(device(), light, more);
      ADD_FAILURE() << "a third engine found room for " << share;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.code(), Errc::full) << error.what();
    }
  }
  second.stop();
  Engine third(device(), light, half);
  Client to_third = third.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(to_third, light, 0, 100));
}

/// The multiprocessors that answer `count` queries of where_operator().
std::set<std::uint32_t> multiprocessors_of(Engine& engine, std::size_t count) {
  Client client = engine.connect();
  std::set<std::uint32_t> seen;
  std::size_t sent = 0;
  std::size_t back = 0;
  while (back < count) {
    while (sent < count && client.submit(query_of(headrace::testing::where_operator(), sent))) ++sent;
    client.poll([&](const Completion& done) {
      ASSERT_TRUE(headrace::testing::succeeded(done.status));
      std::uint32_t which = 0;
      std::memcpy(&which, done.answer.data(), sizeof(which));
      seen.insert(which);
      ++back;
    });
  }
  return seen;
}

TEST_P(Dispatched, PoolsHaveMultiprocessorsOfTheirOwn) {
  const auto all = static_cast<std::uint32_t>(device().properties().multiprocessor_count);
  const bool on_host = device().properties().host_cores;
  const std::size_t queries = on_host ? 500 : 20'000;
  const Operator where = headrace::testing::where_operator();
  for (Plan plan : both(4096)) {
    SCOPED_TRACE(plan.answer_inline ? "inline" : "");
    plan.clients_max = 4;
    plan.share = 0.25;
    Engine first(device(), where, plan);
    plan.share = 0.5;
    Engine second(device(), where, plan);
    const auto expect = [&](double one, double other) {
      const std::set<std::uint32_t> ones = multiprocessors_of(first, queries);
      const std::set<std::uint32_t> others = multiprocessors_of(second, queries);
      if (on_host) return;  // all with one number
      EXPECT_EQ(ones.size(), static_cast<std::size_t>(all * one));
      EXPECT_EQ(others.size(), static_cast<std::size_t>(all * other));
      for (const std::uint32_t which : ones) EXPECT_FALSE(others.contains(which)) << which;
    };
    ASSERT_NO_FATAL_FAILURE(expect(0.25, 0.5));
    second.change({.share = 0.25});
    first.change({.share = 0.75});
    ASSERT_NO_FATAL_FAILURE(expect(0.75, 0.25));
  }
}

TEST_P(Dispatched, SharesChangeWhileQueriesAreInFlight) {
  // One client has the maximum in flight, the other one query at a time.
  constexpr std::array<std::uint64_t, 2> kQueries{3000, 300};
  constexpr std::uint64_t kAll = kQueries[0] + kQueries[1];
  constexpr std::array kShares{0.25, 1.0, 0.5};
  std::vector<std::pair<Operator, Plan>> cases{{operators::light({.query_bytes = 64}), both(32)[0]},
                                               {operators::light({.query_bytes = 64}), both(32)[1]},
                                               {operators::reference({.blocks = 3, .threads = 32}), both(32)[0]},
                                               {uneven_operator(1), both(32)[0]}};
  for (auto& one : cases) {
    const Operator& op = one.first;
    Plan& plan = one.second;
    SCOPED_TRACE(op.name + (plan.answer_inline ? " inline" : ""));
    plan.clients_max = 3;
    Engine engine(device(), op, plan);
    std::atomic<std::uint32_t> asking{2};
    std::vector<std::jthread> askers;
    for (std::uint64_t c = 0; c < 2; ++c) {
      askers.emplace_back([&, c, client = engine.connect()]() mutable {
        exchange(client, op, kQueries[0] * c, kQueries[c], c == 0 ? SIZE_MAX : 1);
        --asking;
      });
    }
    std::uint32_t changes = 0;
    // Bounded, because lost queries would never count as hung.
    for (; asking > 0 && changes < 300; ++changes) {
      const double share = kShares[changes % kShares.size()];
      engine.change({.share = share});
      EXPECT_EQ(engine.plan().share, share);
    }
    askers.clear();
    EXPECT_GT(changes, 2U);
    EXPECT_FALSE(engine.fault());
    const EngineStatistics statistics = engine.statistics();
    EXPECT_EQ(statistics.submitted, kAll);
    EXPECT_EQ(statistics.answered, kAll);
    EXPECT_EQ(statistics.stages.samples, kAll / plan.sample_stages_every);
    EXPECT_LT(statistics.stages.queue, std::chrono::seconds(5)) << "a query has no time of pickup";
  }
}

TEST_P(Dispatched, QueriesThatNoPoolHasAnsweredWaitForTheNext) {
  headrace::testing::Hold hold(device());
  const Operator op = headrace::testing::moody_operator(hold, 1);
  Plan plan = dispatched(64);
  plan.share = 0.5;
  plan.hang_after = std::chrono::seconds(20);
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  const auto submit = [&](headrace::testing::Moodiness mood, std::uint64_t number) {
    const auto query = headrace::testing::ask_for(mood, number);
    ASSERT_TRUE(client.submit(headrace::testing::bytes_of(query), {.tag = number}).ok());
  };
  std::uint64_t asked = 0;
  submit(headrace::testing::Moodiness::hold, asked++);
  while (!hold.entered()) std::this_thread::yield();
  std::jthread changing([&] { engine.change({.share = 0.25}); });  // waits for the held block
  while (asked < 40) submit(headrace::testing::Moodiness::answer, asked++);
  std::this_thread::sleep_for(milliseconds(20));
  hold.release();
  std::map<std::uint64_t, Status> back = headrace::testing::outcomes(client);
  EXPECT_EQ(back.size(), asked);
  for (const auto& [tag, status] : back) EXPECT_TRUE(status.ok()) << tag;
  changing.join();
  EXPECT_EQ(engine.plan().share, 0.25);
}

TEST_P(Dispatched, SharesThatEnginesCannotChangeToAreRefused) {
  const Operator light = operators::light({.query_bytes = 64});
  Plan half = dispatched(32);
  half.share = 0.5;
  Engine first(device(), light, half);
  const Engine second(device(), operators::reference({.blocks = 2, .threads = 32}), half);
  for (const double share : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(first.change({.share = share}), UsageError) << share;
  }
  if (!device().properties().host_cores) {
    try {
      first.change({.share = 0.75});
      ADD_FAILURE() << "there was room for 1.25";
    } catch (const UsageError& error) {
      EXPECT_EQ(error.code(), Errc::full) << error.what();
    }
  }
  EXPECT_EQ(first.plan().share, 0.5);
  Client client = first.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(client, light, 0, 100));
  first.stop();
  try {
    first.change({.share = 0.25});
    ADD_FAILURE() << "an engine that has stopped took a share";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Errc::stopped) << error.what();
  }
  Plan workers = dispatched(32);
  workers.workers = 1;
  Plan blocking;
  for (const Plan& plan : {workers, blocking}) {
    Engine other(device(), light, plan);
    EXPECT_THROW(other.change({.share = 0.5}), UsageError) << plan.workers;
    EXPECT_EQ(other.plan().share, 1);
  }
}

TEST_P(Dispatched, AnEngineThatHangsFailsWhereItsShareIsToChange) {
  const headrace::testing::Hold hold(device());
  Plan plan = dispatched(8);
  plan.share = 0.5;
  plan.hang_after = milliseconds(300);
  Engine engine(device(), headrace::testing::moody_operator(hold, 1), plan);
  Client client = engine.connect();
  const auto query = headrace::testing::ask_for(headrace::testing::Moodiness::hold);
  ASSERT_TRUE(client.submit(headrace::testing::bytes_of(query)).ok());
  while (!hold.entered()) std::this_thread::yield();
  try {
    engine.change({.share = 0.25});
    ADD_FAILURE() << "a pool that hangs took a share";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Errc::hung) << error.what();
  }
  ASSERT_TRUE(engine.fault().has_value());
  EXPECT_EQ(engine.fault()->code, Errc::hung);
  EXPECT_EQ(headrace::testing::outcomes(client).at(0).error().code, Errc::hung);
}

TEST_P(Dispatched, SharesThatCannotBeAreRefused) {
  const auto says = [&](double share, Schedule schedule, std::uint32_t workers) -> std::string {
    Plan plan = dispatched(8);
    plan.schedule = schedule;
    plan.share = share;
    plan.workers = workers;
    try {
      const Engine engine(device(), operators::light(), plan);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(says(0.25, Schedule::dispatched, 0), "nothing");
  EXPECT_EQ(says(0, Schedule::dispatched, 0), "plan: share must be above 0 and at most 1, not 0");
  EXPECT_EQ(says(1.5, Schedule::dispatched, 0), "plan: share must be above 0 and at most 1, not 1.5");
  EXPECT_EQ(says(0.5, Schedule::caller, 0), "plan: share is available with schedule 'dispatched', not with 'caller'");
  EXPECT_EQ(says(0.5, Schedule::dispatched, 1),
            "plan: share and workers both set the number of resident blocks; set only one of them");
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(Dispatched);

}  // namespace
}  // namespace headrace::serve
