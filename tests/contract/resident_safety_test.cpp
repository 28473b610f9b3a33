#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/serve/engine.hpp"
#include "serve/engine_state.hpp"
#include "tests/contract/resident_operators.hpp"
#include "tests/contract/stay_kernel.hpp"

namespace headrace::testing {
namespace {

using serve::Client;
using serve::Completion;
using serve::Doorbell;
using serve::Engine;
using serve::Plan;
using std::chrono::seconds;

/// Longer than a busy machine delays the heartbeat of a working kernel.
constexpr Duration kHangAfter = seconds(1);

[[nodiscard]] Plan persistent_plan(Doorbell doorbell, std::uint32_t boxes) {
  Plan plan;
  plan.schedule = serve::Schedule::persistent;
  plan.doorbell = doorbell;
  plan.streams_per_thread = boxes;
  plan.slots = 32;
  plan.clients_max = 2;
  return plan;
}

[[nodiscard]] Plan dispatched_plan() {
  Plan plan;
  plan.schedule = serve::Schedule::dispatched;
  plan.host_memory = MemoryKind::mapped;
  plan.workers = 2;
  plan.slots = 32;
  plan.clients_max = 2;
  return plan;
}

[[nodiscard]] std::string trace_of(const Plan& plan) {
  return fmt::format("{} {}{}", to_string(plan.schedule), to_string(plan.doorbell),
                     plan.answer_inline ? ", inline" : "");
}

/// Polls until nothing is in flight; every status must be this error. False after 30 s.
[[nodiscard]] bool all_fail_with(Client& client, Errc code) {
  return eventually([&] {
    client.poll([&](const Completion& done) { EXPECT_TRUE(failed_with(done.status, code)); });
    return client.in_flight() == 0;
  });
}

class ResidentSafety : public DeviceTest {
 protected:
  [[nodiscard]] static std::vector<Doorbell> doorbells() {
    if (device().properties().concurrent_managed_access) return {Doorbell::words, Doorbell::barrier};
    return {Doorbell::words};
  }
  /// All plans that keep a kernel resident.
  [[nodiscard]] static std::vector<Plan> resident_plans(std::uint32_t boxes, std::uint32_t blocks) {
    std::vector<Plan> plans{dispatched_plan()};
    if (blocks == 1) plans.emplace_back(dispatched_plan()).answer_inline = true;
    for (const Doorbell doorbell : doorbells()) plans.push_back(persistent_plan(doorbell, boxes));
    return plans;
  }
  /// One query asked of a working engine.
  static void expect_answer(Engine& engine, std::uint64_t number) {
    Client client = engine.connect();
    MoodyAnswer answer{};
    ASSERT_OK(client.ask(bytes_of(ask_for(Moodiness::answer, number)), std::as_writable_bytes(std::span(&answer, 1))));
    EXPECT_EQ(answer.words[9], MoodyAnswer::word(number, 9));
  }
};
HEADRACE_ON_EVERY_DEVICE(ResidentSafety);

TEST_P(ResidentSafety, AHungOperatorIsReportedAndANewEngineServes) {
  for (const std::uint32_t blocks : {1U, 3U}) {
    for (Plan plan : resident_plans(2, blocks)) {
      SCOPED_TRACE(::testing::Message() << trace_of(plan) << ", blocks " << blocks);
      Hold hold(device());
      const serve::Operator op = moody_operator(hold, blocks);
      plan.hang_after = kHangAfter;
      std::optional<Engine> engine(std::in_place, device(), op, plan);
      std::optional<Client> client(engine->connect());
      ASSERT_OK(client->submit(bytes_of(ask_for(Moodiness::hold))));
      ASSERT_TRUE(eventually([&] { return hold.entered(); }));
      ASSERT_TRUE(all_fail_with(*client, Errc::hung));
      ASSERT_TRUE(engine->fault());
      EXPECT_EQ(engine->fault()->code, Errc::hung);
      EXPECT_TRUE(failed_with(client->submit(bytes_of(ask_for(Moodiness::answer))), Errc::hung));
      EXPECT_EQ(engine->statistics().failed, 1U);

      const Time began = SteadyClock::now();
      engine.reset();
      EXPECT_LT(SteadyClock::now() - began, seconds(10)) << "an engine's destructor does not wait for a hanging kernel";
      client.reset();
      EXPECT_EQ(Engine::abandoned_count(), 1U);

      plan.hang_after = seconds(60);
      Engine next(device(), op, plan);
      ASSERT_NO_FATAL_FAILURE(expect_answer(next, 5));
      hold.release();
      EXPECT_TRUE(eventually([] { return Engine::abandoned_count() == 0; }));
      ASSERT_NO_FATAL_FAILURE(expect_answer(next, 6));
    }
  }
}

/// Whether a query after a held one waits for it, although a worker is free.
[[nodiscard]] bool waits_for_held(Device device, const Plan& plan) {
  Hold hold(device);
  Engine engine(device, moody_operator(hold, 1), plan);
  Client held = engine.connect();
  Client other = engine.connect();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // during which block 0 finds nothing
  EXPECT_OK(held.submit(bytes_of(ask_for(Moodiness::hold))));
  EXPECT_TRUE(eventually([&] { return hold.entered(); }));
  EXPECT_OK(other.submit(bytes_of(ask_for(Moodiness::answer))));
  const Time until = SteadyClock::now() + std::chrono::milliseconds(100);
  while (other.poll([](const Completion&) {}) == 0 && SteadyClock::now() < until) std::this_thread::yield();
  const bool waits = other.in_flight() != 0;
  hold.release();
  EXPECT_TRUE(engine.drain(seconds(30)));
  return waits;
}

TEST_P(ResidentSafety, BlockZeroAnswersInlineWhereThePlanSaysSo) {
  Plan plan = dispatched_plan();
  plan.hang_after = seconds(60);
  plan.answer_inline = true;
  bool waits = false;
  for (int attempt = 0; attempt < 10 && !waits; ++attempt) waits = waits_for_held(device(), plan);
  EXPECT_TRUE(waits);
}

TEST_P(ResidentSafety, AHangFailsEveryQueryOfTheEngine) {
  Hold hold(device());
  Plan plan = persistent_plan(Doorbell::words, 1);
  plan.hang_after = kHangAfter;
  Engine engine(device(), moody_operator(hold, 1), plan);
  Client client = engine.connect();
  ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::hold))));
  for (int i = 0; i < 5; ++i) ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::answer))));
  ASSERT_TRUE(all_fail_with(client, Errc::hung));
  EXPECT_EQ(engine.statistics().failed, 6U);
  hold.release();
}

TEST_P(ResidentSafety, StoppingIsBoundedWhileAnOperatorHangs) {
  std::vector<Plan> plans = resident_plans(1, 2);
  plans.push_back(resident_plans(1, 1)[1]);
  for (Plan plan : plans) {
    SCOPED_TRACE(trace_of(plan));
    Hold hold(device());
    plan.hang_after = kHangAfter;
    Engine engine(device(), moody_operator(hold, plan.answer_inline ? 1 : 2), plan);
    Client client = engine.connect();
    ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::hold))));
    ASSERT_TRUE(eventually([&] { return hold.entered(); }));
    const Time began = SteadyClock::now();
    engine.stop();  // with engine threads, the query has its time to come back; then the kernel has its to leave
    EXPECT_LT(SteadyClock::now() - began, seconds(10));
    const Errc code = plan.schedule == serve::Schedule::dispatched ? Errc::stopped : Errc::hung;
    ASSERT_TRUE(all_fail_with(client, code));
    EXPECT_EQ(Engine::abandoned_count(), 1U);
    hold.release();
    EXPECT_TRUE(eventually([] { return Engine::abandoned_count() == 0; }));
  }
}

TEST_P(ResidentSafety, AQueryThatTakesItsTimeIsNoHang) {
  Hold hold(device());
  Plan plan = persistent_plan(Doorbell::words, 1);
  plan.hang_after = seconds(60);
  Engine engine(device(), moody_operator(hold, 1), plan);
  Client client = engine.connect();
  ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::hold))));
  ASSERT_TRUE(eventually([&] { return hold.entered(); }));
  const Time held_until = SteadyClock::now() + 10 * serve::detail::Watchdog::kLookEvery;
  while (SteadyClock::now() < held_until) std::this_thread::yield();
  EXPECT_FALSE(engine.fault());
  hold.release();
  ASSERT_TRUE(engine.drain(seconds(30)));
  client.poll([](const Completion& done) { EXPECT_OK(done.status); });
}

/// Writes an engine's report of a fault caused by a query to stderr, for the parent process.
void report_fault(Device device) {
  const Hold hold(device);
  const serve::Operator op = moody_operator(hold, 1);
  {
    Engine engine(device, op, persistent_plan(Doorbell::words, 2));
    Client client = engine.connect();
    static_cast<void>(client.submit(bytes_of(ask_for(Moodiness::fault))));
    const bool failed = all_fail_with(client, Errc::device_fault);
    const auto fault = engine.fault();
    if (!failed || !fault) std::exit(1);
    const auto refused = client.submit(bytes_of(ask_for(Moodiness::answer)));
    std::fprintf(stderr, "fault: %s; refused: %s\n", std::string(to_string(fault->code)).c_str(),
                 refused ? "no" : std::string(to_string(refused.error().code)).c_str());
  }
  if (device.kind() == DeviceKind::cuda) {
    try {
      const Engine next(device, op, persistent_plan(Doorbell::words, 2));
    } catch (const DeviceError& error) {
      std::fprintf(stderr, "next: %s\n", error.what());
    }
  }
}

// In a child process, because a CUDA fault is permanent for the process.
TEST_P(ResidentSafety, AFaultOfACudaDeviceIsToldAndHangsNobody) {
  if (on_cpu()) GTEST_SKIP() << "a CPU device's fault is tested below, in this process";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report_fault(device());
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "fault: device fault; refused: device fault(.|\n)*next: .*start a new process");
}

TEST_P(ResidentSafety, AFaultOfACpuDeviceFailsItsEngineAlone) {
  if (!on_cpu()) GTEST_SKIP() << "a CUDA device's fault is for a child process, above";
  for (const std::uint32_t blocks : {1U, 3U}) {
    for (const Plan& plan : resident_plans(2, blocks)) {
      SCOPED_TRACE(::testing::Message() << trace_of(plan) << ", blocks " << blocks);
      const Hold hold(device());
      const serve::Operator op = moody_operator(hold, blocks);
      {
        Engine engine(device(), op, plan);
        Client client = engine.connect();
        ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::fault))));
        ASSERT_TRUE(all_fail_with(client, Errc::device_fault));
        ASSERT_TRUE(engine.fault());
        EXPECT_EQ(engine.fault()->code, Errc::device_fault);
        EXPECT_TRUE(failed_with(client.submit(bytes_of(ask_for(Moodiness::answer))), Errc::device_fault));
      }
      EXPECT_TRUE(eventually([] { return Engine::abandoned_count() == 0; }));
      Engine next(device(), op, plan);
      ASSERT_NO_FATAL_FAILURE(expect_answer(next, 3));
    }
  }
}

/// A kernel of a CPU device whose state the test controls.
class Told final : public serve::detail::Resident {
 public:
  [[nodiscard]] Status look(Time now) noexcept override {
    looks.fetch_add(1);
    return stayer.kernel.look(stayer.beat(), seconds(60), now);
  }
  [[nodiscard]] ResidentKernel& kernel() noexcept override { return stayer.kernel; }

  std::atomic<int> looks{0};
  Stayer stayer{Device::parse("cpu")};
};

[[nodiscard]] std::shared_ptr<serve::detail::EngineState> idle_engine() {
  Plan plan;
  plan.schedule = serve::Schedule::none;
  plan.clients_max = 1;
  plan.hang_after = kHangAfter;
  return std::make_shared<serve::detail::EngineState>(Device::parse("cpu"), operators::light(), plan);
}

/// Gives the engine a watchdog for this kernel.
Told& watch(serve::detail::EngineState& engine) {
  auto told = std::make_unique<Told>();
  Told& kept = *told;
  engine.watchdog = std::make_unique<serve::detail::Watchdog>(engine, std::move(told));
  return kept;
}

TEST(ResidentWatchdog, FailsTheEngineOfAKernelThatEndsUnasked) {
  const auto engine = idle_engine();
  Told& told = watch(*engine);
  ASSERT_TRUE(eventually([&] { return told.looks.load() > 3; }));
  EXPECT_FALSE(engine->fault());
  told.stayer.feel(Staying::over);
  ASSERT_TRUE(eventually([&] { return engine->fault().has_value(); }));
  EXPECT_EQ(engine->fault()->code, Errc::device_fault);
  engine->fail({Errc::hung, 5});
  EXPECT_EQ(engine->fault()->code, Errc::device_fault) << "the first fault is the one that counts";
  engine->stop();
  EXPECT_TRUE(told.stayer.told_at_once) << "a kernel in an unknown state must leave at once";
}

TEST(ResidentWatchdog, AnEngineWhoseKernelStaysIsKeptUntilItLeaves) {
  auto engine = idle_engine();
  const std::weak_ptr<serve::detail::EngineState> alive = engine;
  Told& told = watch(*engine);
  const std::shared_ptr<const Buffer> words = told.stayer.memory();
  told.stayer.feel(Staying::hung);
  ASSERT_TRUE(eventually([&] { return told.stayer.hangs(); }));
  const Time began = SteadyClock::now();
  engine->stop();
  EXPECT_GE(SteadyClock::now() - began, ResidentKernel::kLeaveWithin);
  EXPECT_FALSE(told.stayer.told_at_once);
  engine.reset();
  EXPECT_EQ(Engine::abandoned_count(), 1U);
  EXPECT_FALSE(alive.expired());
  told.stayer.feel(Staying::well);
  EXPECT_TRUE(eventually([] { return Engine::abandoned_count() == 0; }));
  EXPECT_TRUE(alive.expired());
}

TEST(ResidentWatchdog, AFaultKeepsItsCodes) {
  const auto engine = idle_engine();
  EXPECT_FALSE(engine->fault());
  engine->fail({Errc::device_fault, -700});
  EXPECT_EQ(*engine->fault(), (Error{Errc::device_fault, -700}));
}

}  // namespace
}  // namespace headrace::testing
