#include "headrace/operators/light.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/query_gate.hpp"

/// A device fails for good while queries are in flight: every query comes back with the fault, and no client hangs.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;

TEST(ScheduleFaults, QueriesInFlightComeBackWithTheFaultAndLaterOnesAreRefusedWithIt) {
  for (const Schedule schedule : kCallingSchedules) {
    for (const MemoryKind memory : {MemoryKind::pinned, MemoryKind::mapped}) {
      SCOPED_TRACE(::testing::Message() << to_string(schedule) << " " << to_string(memory));
      FaultyDevice faulty;
      QueryGate gate;
      const Operator op = gated_operator(gate);
      Plan plan = plan_of(schedule, 1, 2);
      plan.host_memory = memory;
      plan.batch_max = 3;
      Engine engine(faulty.device(), op, plan);
      Client client = engine.connect();
      for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(client.submit(query_of(op, i), {.tag = i}));
      gate.wait_until_entered();
      EXPECT_FALSE(engine.fault());
      faulty.fail();
      gate.open();
      const auto back = outcomes(client);
      ASSERT_EQ(back.size(), 10U);
      // A kernel that has signalled its answer through its word has answered, whatever the device reports later.
      const bool tells = memory == MemoryKind::mapped && schedule != Schedule::blocking;
      std::uint64_t answered = 0;
      for (const auto& [tag, status] : back) {
        if (tells && status.ok()) {
          ++answered;
          continue;
        }
        ASSERT_FALSE(status.ok()) << tag;
        EXPECT_EQ(status.error(), kFault) << tag;
      }
      EXPECT_LE(answered, std::uint64_t{2} * plan.batch_max);  // those on the device
      EXPECT_EQ(client.submit(query_of(op, 1)).error(), kFault);
      ASSERT_TRUE(engine.fault());
      EXPECT_EQ(*engine.fault(), kFault);
      EXPECT_EQ(engine.statistics().failed, 10U - answered);
      engine.stop();
    }
  }
}

// The fault strikes at any moment, under load from several clients. Each query comes back once, with the right answer
// or with the fault.
TEST(ScheduleFaults, UnderLoadNothingIsLost) {
  const Operator op = operators::light({.query_bytes = 64});
  for (const Schedule schedule : kCallingSchedules) {
    SCOPED_TRACE(to_string(schedule));
    FaultyDevice faulty;
    Plan plan = plan_of(schedule, 2, 2);
    plan.batch_max = 4;
    Engine engine(faulty.device(), op, plan);
    std::atomic<std::uint64_t> answered{0};
    std::vector<std::jthread> threads;
    for (int c = 0; c < 2; ++c) {
      threads.emplace_back([&, client = engine.connect()]() mutable {
        const auto query = query_of(op, 1);
        std::uint64_t admitted = 0;
        std::uint64_t back = 0;
        bool failed = false;
        while (!failed || client.in_flight() > 0) {
          if (!failed) {
            const auto ticket = client.submit(query);
            admitted += ticket ? 1U : 0U;
            failed = !ticket && ticket.error() == kFault;
          }
          back += client.poll([&](const serve::Completion& done) {
            EXPECT_TRUE(done.status.ok() || done.status.error() == kFault);
            failed = failed || !done.status;
            answered.fetch_add(1);
          });
        }
        EXPECT_EQ(admitted, back);
      });
    }
    while (answered.load() < 500) std::this_thread::yield();
    faulty.fail();
    threads.clear();
    EXPECT_TRUE(engine.fault());
  }
}

}  // namespace
}  // namespace headrace::testing
