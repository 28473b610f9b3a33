#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/serve/detail/ladder.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"

namespace headrace::serve {
namespace {

using headrace::testing::answer_of;
using headrace::testing::exchange;
using headrace::testing::query_of;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Serve : public headrace::testing::DeviceTest {};

using headrace::testing::gated_operator;
using headrace::testing::QueryGate;

TEST_P(Serve, EveryRungAnswersEveryQueryOnceAndRight) {
  const Operator op = operators::light();
  for (const Rung& rung : rungs()) {
    for (const std::uint32_t threads : {1U, 3U}) {
      if (!rung.many_threads && threads > 1) continue;
      SCOPED_TRACE(::testing::Message() << rung.id << ", " << threads << " threads");
      Plan plan = rung.plan;
      plan.threads = threads;
      plan.slots = 32;
      plan.sample_stages_every = 4;
      Engine engine(device(), op, plan);
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 100, 200));
      const EngineStatistics statistics = engine.statistics();
      EXPECT_EQ(statistics.submitted, 200U);
      EXPECT_EQ(statistics.answered, 200U);
      EXPECT_EQ(statistics.failed + statistics.cancelled + statistics.expired, 0U);
      EXPECT_EQ(statistics.stages.samples, 50U);
      EXPECT_GT(statistics.stages.kernel, Duration::zero());
    }
  }
}

TEST_P(Serve, TheReferenceOperatorAnswersLikeTheHost) {
  const Operator op =
      operators::reference({.query_bytes = 512, .answer_bytes = 700, .blocks = 3, .threads = 96, .steps = 50});
  for (const MemoryKind memory : {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped, MemoryKind::managed}) {
    Plan plan;
    plan.host_memory = memory;
    plan.slots = 16;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 40));
  }
}

TEST_P(Serve, ManyClientsShareNothing) {
  const Operator op = operators::light();
  Plan plan;
  plan.threads = 2;
  plan.clients_max = 4;
  plan.slots = 8;
  Engine engine(device(), op, plan);
  std::vector<std::jthread> threads;
  for (std::uint64_t c = 0; c < 4; ++c) {
    threads.emplace_back([&, c, client = engine.connect()]() mutable { exchange(client, op, 1000 * c, 100); });
  }
  threads.clear();
  EXPECT_EQ(engine.statistics().answered, 400U);
}

TEST_P(Serve, LanesAreGivenBackAndRunOut) {
  const Operator op = operators::light();
  Plan plan;
  plan.clients_max = 2;
  plan.slots = 4;
  Engine engine(device(), op, plan);
  std::optional<Client> a(engine.connect());
  std::optional<Client> b(engine.connect());
  EXPECT_THROW(static_cast<void>(engine.connect()), UsageError);
  ASSERT_TRUE(a->submit(query_of(op, 1)));
  a.reset();  // waits for the query in flight
  Client c = engine.connect();
  ASSERT_NO_FATAL_FAILURE(exchange(c, op, 5, 20));
}

TEST(ServeOnCpu, RefusesWhenFullAndLosesNothing) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Plan plan;
  plan.slots = 4;
  Engine engine(Device::parse("cpu"), op, plan);
  Client client = engine.connect();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.submit(query_of(op, 1)));
  const auto refused = client.submit(query_of(op, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::full);
  EXPECT_EQ(engine.statistics().refused, 1U);
  EXPECT_FALSE(engine.drain(milliseconds(20)));
  gate.open();
  EXPECT_TRUE(engine.drain(seconds(10)));
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_TRUE(done.status); }), 4U);
}

TEST(ServeOnCpu, CancelledExpiredAndStoppedQueriesComeBackWithThatError) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Plan plan;
  plan.slots = 8;
  Engine engine(Device::parse("cpu"), op, plan);
  Client client = engine.connect();
  ASSERT_TRUE(client.submit(query_of(op, 1)));
  gate.wait_until_entered();  // the worker runs the first query; the others stay queued behind it
  const auto cancelled = client.submit(query_of(op, 2), {.tag = 2});
  ASSERT_TRUE(cancelled);
  ASSERT_TRUE(client.submit(query_of(op, 3), {.tag = 3, .deadline = SteadyClock::now()}));
  ASSERT_TRUE(client.submit(query_of(op, 4), {.tag = 4, .deadline = SteadyClock::now() + seconds(3600)}));
  client.cancel(*cancelled);
  gate.open();
  ASSERT_TRUE(engine.drain(seconds(10)));
  std::map<std::uint64_t, Status> back;
  client.poll([&](const Completion& done) { back[done.tag] = done.status; });
  ASSERT_EQ(back.size(), 4U);
  EXPECT_TRUE(back[0]);
  EXPECT_EQ(back[2].error().code, Errc::cancelled);
  EXPECT_EQ(back[3].error().code, Errc::deadline_exceeded);
  EXPECT_TRUE(back[4]);
  EXPECT_EQ(engine.statistics().cancelled, 1U);
  EXPECT_EQ(engine.statistics().expired, 1U);
}

TEST(ServeOnCpu, ADeadlineThatPassesDuringTheWorkIsNotMet) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine(Device::parse("cpu"), op, {});
  Client client = engine.connect();
  const Time deadline = SteadyClock::now() + seconds(1);  // longer than a busy machine takes to get there
  ASSERT_TRUE(client.submit(query_of(op, 1), {.deadline = deadline}));
  gate.wait_until_entered();
  while (SteadyClock::now() <= deadline) std::this_thread::yield();
  gate.open();
  ASSERT_TRUE(engine.drain(seconds(10)));
  client.poll([](const Completion& done) {
    ASSERT_FALSE(done.status);
    EXPECT_EQ(done.status.error().code, Errc::deadline_exceeded);
  });
}

TEST(ServeOnCpu, StopAnswersWhatIsQueuedAndRefusesWhatComes) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Plan plan;
  plan.slots = 8;
  Engine engine(Device::parse("cpu"), op, plan);
  Client client = engine.connect();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.submit(query_of(op, 1)));
  gate.wait_until_entered();
  std::jthread stopper([&] { engine.stop(); });
  // Once new queries are refused, stop() has taken effect; the gate still holds the worker.
  std::size_t later = 0;
  for (Result<Ticket> ticket = client.submit(query_of(op, 9)); ticket.ok() || ticket.error().code != Errc::stopped;
       ticket = client.submit(query_of(op, 9))) {
    later += ticket ? 1U : 0U;
  }
  gate.open();
  stopper.join();
  std::size_t answered = 0;
  std::size_t stopped = 0;
  client.poll([&](const Completion& done) {
    answered += done.status ? 1U : 0U;
    stopped += !done.status && done.status.error().code == Errc::stopped ? 1U : 0U;
  });
  EXPECT_GE(answered, 1U);
  EXPECT_EQ(answered + stopped, 3 + later);
  engine.stop();
}

TEST_P(Serve, AClientOutlivesItsEngine) {
  const Operator op = operators::light();
  std::optional<Engine> engine(std::in_place, device(), op, Plan{});
  Client client = engine->connect();
  ASSERT_TRUE(client.submit(query_of(op, 1)));
  engine.reset();
  EXPECT_EQ(client.poll([](const Completion&) {}), 1U);
  EXPECT_EQ(client.submit(query_of(op, 1)).error().code, Errc::stopped);
}

// Clients submit while the engine stops. Every admitted query comes back, whichever side wins.
TEST_P(Serve, NothingIsLostWhenStoppingRacesWithSubmitting) {
  const Operator op = operators::light({.query_bytes = 64});
  for (int round = 0; round < 20; ++round) {
    Plan plan;
    plan.threads = 2;
    plan.slots = 16;
    Engine engine(device(), op, plan);
    std::atomic<std::uint64_t> started{0};
    std::vector<std::jthread> threads;
    for (int c = 0; c < 2; ++c) {
      threads.emplace_back([&, client = engine.connect()]() mutable {
        const auto query = query_of(op, 1);
        std::size_t admitted = 0;
        std::size_t back = 0;
        for (;;) {
          const auto ticket = client.submit(query);
          admitted += ticket ? 1U : 0U;
          back += client.poll([](const Completion&) {});
          started.fetch_add(1);
          if (!ticket && ticket.error().code == Errc::stopped) break;
        }
        while (client.in_flight() > 0) back += client.poll([](const Completion&) {});
        EXPECT_EQ(admitted, back);
      });
    }
    while (started.load() < 50) std::this_thread::yield();
    engine.stop();
  }
}

TEST_P(Serve, AskAndWaitAndSubmitMany) {
  const Operator op = operators::light();
  Plan plan;
  plan.slots = 8;
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  const auto query = query_of(op, 7);
  std::vector<std::byte> answer(op.answer_bytes);
  ASSERT_TRUE(client.ask(query, answer));
  EXPECT_EQ(answer, answer_of(op, query));

  std::vector<std::byte> many;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto next = query_of(op, i);
    many.insert(many.end(), next.begin(), next.end());
  }
  const auto admitted = client.submit_many(many, {.tag = 50});
  ASSERT_TRUE(admitted);
  EXPECT_EQ(*admitted, 8U);
  EXPECT_FALSE(client.ask(query, answer));  // only while nothing is in flight
  const auto last = client.wait(8);
  ASSERT_TRUE(last);
  EXPECT_TRUE(*last);
  std::uint64_t tag = 50;
  while (client.in_flight() > 0) client.poll([&](const Completion& done) { EXPECT_EQ(done.tag, tag++); });
  EXPECT_EQ(tag, 58U);
  EXPECT_EQ(client.wait(99).error().code, Errc::invalid_argument);
  EXPECT_TRUE(*client.wait(0));
}

TEST_P(Serve, RefusesSizesThatDoNotFit) {
  const Operator op = operators::light();
  Engine engine(device(), op, {});
  Client client = engine.connect();
  const std::vector<std::byte> odd(op.query_bytes - 1);
  EXPECT_EQ(client.submit(odd).error().code, Errc::invalid_argument);
  EXPECT_EQ(client.submit_many(odd).error().code, Errc::invalid_argument);
  std::vector<std::byte> answer(op.answer_bytes + 1);
  EXPECT_EQ(client.ask(query_of(op, 1), answer).error().code, Errc::invalid_argument);
  EXPECT_EQ(engine.statistics().submitted, 0U);
}

TEST_P(Serve, PlansThatCannotWorkAreRefusedByName) {
  const Operator op = operators::light();
  const auto refused = [&](const char* names, auto change) {
    Plan plan;
    change(plan);
    try {
      Engine engine(device(), op, plan);
      ADD_FAILURE() << names;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(names), std::string::npos) << error.what();
    }
  };
  refused("threads", [](Plan& p) { p.threads = 0; });
  refused("threads", [](Plan& p) { p.threads = 4'000'000'000; });
  refused("slots", [](Plan& p) { p.slots = 3; });
  refused("slots", [](Plan& p) { p.slots = 0; });
  refused("clients_max", [](Plan& p) { p.clients_max = 0; });
  refused("host_memory", [](Plan& p) { p.host_memory = MemoryKind::device; });
  refused("spin", [](Plan& p) { p.spin = Duration{-1}; });
}

TEST_P(Serve, AnEngineThatDoesNothingAnswersAtOnce) {
  const Operator op = operators::light();
  Plan plan;
  plan.schedule = Schedule::none;
  Engine engine(device(), op, plan);
  Client client = engine.connect();
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(client.submit(query_of(op, 1)));
    ASSERT_EQ(client.poll([](const Completion& done) { EXPECT_TRUE(done.status); }), 1U);
  }
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(Serve);

TEST(Rungs, AreNumberedInOrderAndFoundByNumberAndName) {
  int number = 0;
  for (const Rung& rung : rungs()) {
    EXPECT_EQ(rung.number, ++number);
    EXPECT_EQ(&find_rung(rung.id), &rung);
    EXPECT_EQ(&find_rung(std::to_string(number)), &rung);
    EXPECT_FALSE(rung.removes.empty());
  }
  EXPECT_EQ(number, 15);
  for (const char* bad : {"0", "16", "nine", "", "1x"})
    EXPECT_THROW(static_cast<void>(find_rung(bad)), UsageError) << bad;
}

TEST(Rungs, SayWhereTheyMeanNothing) {
  const Device cpu = Device::parse("cpu");
  EXPECT_EQ(same_as(find_rung("single"), cpu), "");
  EXPECT_NE(same_as(find_rung("stream-ordered"), cpu).find("same as rung 1 here"), std::string::npos);
  EXPECT_NE(same_as(find_rung("page-locked"), cpu).find("same as rung 6 here"), std::string::npos);
}

TEST(PlanNames, ParseBackAndRefuseOthers) {
  for (const auto value : {Allocator::per_query, Allocator::stream_ordered, Allocator::pool}) {
    EXPECT_EQ(parse_allocator(to_string(value)), value);
  }
  for (const auto value : {Streams::shared, Streams::per_thread}) EXPECT_EQ(parse_streams(to_string(value)), value);
  for (const auto value : {Binding::none, Binding::cores}) EXPECT_EQ(parse_binding(to_string(value)), value);
  for (const auto value : {Schedule::blocking, Schedule::none}) EXPECT_EQ(parse_schedule(to_string(value)), value);
  try {
    static_cast<void>(parse_allocator("poll"));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "'poll' is not a kind of allocator: per-query, stream-ordered, pool");
  }
}

}  // namespace
}  // namespace headrace::serve
