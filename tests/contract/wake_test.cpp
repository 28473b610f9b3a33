#include <poll.h>

#include <thread>
#include <vector>

#include "base/event_descriptor.hpp"
#include "headrace/base/detail/parking.hpp"
#include "headrace/operators/light.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"

/// Clients that sleep in an event loop, and the events that wake them, under every schedule.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Completion;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;
using std::chrono::hours;
using std::chrono::milliseconds;

/// Whether the descriptor becomes readable.
bool readable(const EventDescriptor& event, int milliseconds_most) {
  pollfd one{.fd = event.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, milliseconds_most) == 1;
}

constexpr int kLong = 60'000;

TEST(ParkingEvents, AreWrittenOnceByTheNextNotify) {
  Parking parking;
  const EventDescriptor event;
  parking.notify_one();
  EXPECT_FALSE(readable(event, 0));
  parking.arm(event.get());
  parking.arm(event.get());  // the first counts
  EXPECT_FALSE(readable(event, 0));
  parking.notify_one();
  EXPECT_TRUE(event.clear());
  parking.notify_all();
  EXPECT_FALSE(event.clear());
  parking.arm(event.get());
  parking.notify_all();
  EXPECT_TRUE(event.clear());
  parking.arm(event.get());
  parking.disarm();
  parking.disarm();
  parking.notify_one();
  EXPECT_FALSE(event.clear());
}

class Wakes : public ::testing::TestWithParam<Schedule> {
 protected:
  [[nodiscard]] Engine engine(const Operator& op, std::uint32_t slots) const {
    Plan plan = plan_of(GetParam());
    plan.slots = slots;
    plan.host_memory = MemoryKind::mapped;
    plan.workers = GetParam() == Schedule::dispatched ? 1 : 0;
    plan.hang_after = hours(1);
    return Engine(Device::parse("cpu"), op, plan);
  }
};

TEST_P(Wakes, WhenAQueryHasComeBackAndNotBefore) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 4);
  Client client = engine.connect();
  const EventDescriptor event;
  ASSERT_OK(client.submit(query_of(op, 1)));
  client.wake(event.get());
  gate.wait_until_entered();
  EXPECT_FALSE(readable(event, 5));
  gate.open();
  ASSERT_TRUE(readable(event, kLong));
  EXPECT_TRUE(*client.wait(0));
  EXPECT_TRUE(event.clear());
  client.wake(event.get());  // the query is back already
  EXPECT_TRUE(event.clear());
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_OK(done.status); }), 1U);
}

TEST_P(Wakes, NobodyWhoHasForgotten) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 4);
  Client client = engine.connect();
  const EventDescriptor event;
  ASSERT_OK(client.submit(query_of(op, 1)));
  client.wake(event.get());
  gate.wait_until_entered();
  client.forget_wake();
  gate.open();
  EXPECT_TRUE(*client.wait(0));
  ASSERT_TRUE(engine.drain());
  EXPECT_FALSE(readable(event, 5));
}

TEST_P(Wakes, WhenAFullRingHasRoom) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Engine engine = this->engine(op, 1);
  Client client = engine.connect();
  const EventDescriptor event;
  ASSERT_OK(client.submit(query_of(op, 1), {.deadline = SteadyClock::now() + hours(1)}));
  EXPECT_GT(client.soonest_deadline(), SteadyClock::now());
  EXPECT_LT(client.soonest_deadline(), Time::max());
  gate.wait_until_entered();
  EXPECT_TRUE(failed_with(client.submit(query_of(op, 2)), Errc::full));
  client.wake(event.get());
  EXPECT_FALSE(readable(event, 5));
  gate.open();
  ASSERT_TRUE(readable(event, kLong));
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_OK(done.status); }), 1U);
  ASSERT_OK(client.submit(query_of(op, 2)));
}

TEST_P(Wakes, WhenTheEngineStops) {
  const Operator op = operators::light({.query_bytes = 64, .steps = 8});
  Engine engine = this->engine(op, 64);
  Client client = engine.connect();
  const EventDescriptor event;
  for (std::uint64_t number = 0; number < 64; ++number) ASSERT_OK(client.submit(query_of(op, number)));
  std::thread stopper([&] { engine.stop(); });
  std::size_t back = 0;
  while (back < 64) {
    client.wake(event.get());
    ASSERT_TRUE(readable(event, kLong));
    static_cast<void>(event.clear());
    back += client.poll([](const Completion&) {});
  }
  stopper.join();
}

INSTANTIATE_TEST_SUITE_P(Schedules, Wakes,
                         ::testing::Values(Schedule::blocking, Schedule::pipelined, Schedule::async, Schedule::graph,
                                           Schedule::persistent, Schedule::dispatched),
                         [](const auto& given) { return std::string(to_string(given.param)); });

}  // namespace
}  // namespace headrace::testing
