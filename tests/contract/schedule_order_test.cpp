#include <pthread.h>

#include <array>
#include <latch>
#include <string_view>
#include <thread>

#include "headrace/base/error.hpp"
#include "tests/contract/exchange.hpp"

/// Schedules do not wait where they promise not to. CPU devices only: a test can hold their kernels.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;

/// The query's number names the door at which its kernel waits.
class Doors {
 public:
  static constexpr std::size_t kCount = 4;

  void open(std::size_t door) { open_[door].count_down(); }
  void wait_entered(std::size_t door) const { entered_[door].wait(); }
  [[nodiscard]] bool entered(std::size_t door) const { return entered_[door].try_wait(); }
  void pass(std::size_t door) {
    entered_[door].count_down();
    open_[door].wait();
  }

 private:
  std::array<std::latch, kCount> open_{std::latch(1), std::latch(1), std::latch(1), std::latch(1)};
  std::array<std::latch, kCount> entered_{std::latch(1), std::latch(1), std::latch(1), std::latch(1)};
};

/// Answers a query with itself once the door of that number is open.
struct Doored {
  static constexpr const char* kName = "doored";
  using Query = std::uint64_t;
  using Answer = std::uint64_t;
  struct State {
    Doors* doors;
  };

  template <class Group>
  static void answer(Group, const State& state, const Query* query, Answer* answer) {
    state.doors->pass(*query);
    *answer = *query;
  }
};

Operator doored_operator(Doors& doors) {
  return serve::make_operator<Doored>({}, [&doors](Device) { return serve::make_state(Doored::State{&doors}); });
}

Result<serve::Ticket> submit(Client& client, std::uint64_t door) {
  return client.submit(std::as_bytes(std::span(&door, 1)), {.tag = door});
}

/// The tests hold several kernels, each on a worker thread of the device.
bool too_few_processors() { return std::thread::hardware_concurrency() < 2; }

constexpr Schedule kOverlapping[] = {Schedule::pipelined, Schedule::async, Schedule::graph};

TEST(ScheduleOrder, TheNextQueryStartsWhileTheLastComputes) {
  if (too_few_processors()) GTEST_SKIP() << "the CPU device has one worker here";
  for (const Schedule schedule : kOverlapping) {
    SCOPED_TRACE(to_string(schedule));
    Doors doors;
    Engine engine(Device::parse("cpu"), doored_operator(doors), plan_of(schedule, 1, 2));
    Client client = engine.connect();
    ASSERT_OK(submit(client, 0));
    doors.wait_entered(0);
    ASSERT_OK(submit(client, 1));
    doors.wait_entered(1);  // on the same engine thread, while the first is still in its kernel
    doors.open(0);
    doors.open(1);
    EXPECT_EQ(outcomes(client).size(), 2U);
  }
}

TEST(ScheduleOrder, ASlowQueryKeepsBackNoneBehindIt) {
  if (too_few_processors()) GTEST_SKIP() << "the CPU device has one worker here";
  for (const Schedule schedule : kOverlapping) {
    SCOPED_TRACE(to_string(schedule));
    Doors doors;
    for (std::size_t door = 1; door < Doors::kCount; ++door) doors.open(door);
    Engine engine(Device::parse("cpu"), doored_operator(doors), plan_of(schedule, 1, 2));
    Client client = engine.connect();
    ASSERT_OK(submit(client, 0));
    doors.wait_entered(0);
    for (std::uint64_t door = 1; door < Doors::kCount; ++door) ASSERT_OK(submit(client, door));
    EXPECT_TRUE(*client.wait(3));  // through the only stream left
    EXPECT_FALSE(*client.wait(0, Duration::zero()));
    doors.open(0);
    EXPECT_EQ(outcomes(client).size(), Doors::kCount);
  }
}

TEST(ScheduleOrder, QueriesThatComeWhileAllIsBusyGoTogether) {
  for (const Schedule schedule : kCallingSchedules) {
    SCOPED_TRACE(to_string(schedule));
    Doors doors;
    Plan plan = plan_of(schedule);
    plan.batch_max = 8;
    Engine engine(Device::parse("cpu"), doored_operator(doors), plan);
    Client a = engine.connect();
    Client b = engine.connect();
    ASSERT_OK(submit(a, 0));
    doors.wait_entered(0);
    ASSERT_OK(submit(a, 1));
    ASSERT_OK(submit(b, 2));
    ASSERT_OK(submit(b, 3));
    for (const std::size_t door : {0, 1, 2}) doors.open(door);
    doors.wait_entered(3);
    // Both queries are in one batch. Query 2, earlier on the same lane, is done, but it comes back only with the query
    // at the door.
    EXPECT_FALSE(*b.wait(0, std::chrono::milliseconds(2)));
    doors.open(3);
    EXPECT_EQ(outcomes(a).size(), 2U);
    EXPECT_EQ(outcomes(b).size(), 2U);
  }
}

TEST(ScheduleOrder, StoppingLetsWhatIsInFlightLand) {
  for (const Schedule schedule : kCallingSchedules) {
    SCOPED_TRACE(to_string(schedule));
    Doors doors;
    Engine engine(Device::parse("cpu"), doored_operator(doors), plan_of(schedule));
    Client client = engine.connect();
    ASSERT_OK(submit(client, 0));
    doors.wait_entered(0);
    ASSERT_OK(submit(client, 1));
    std::jthread stopper([&] { engine.stop(); });
    const std::uint64_t door = 2;
    for (std::uint64_t tag = 2;
         !failed_with(client.submit(std::as_bytes(std::span(&door, 1)), {.tag = tag}), Errc::stopped); ++tag) {
      std::this_thread::yield();
    }
    doors.open(0);
    stopper.join();
    const auto back = outcomes(client);
    EXPECT_OK(back.at(0));
    EXPECT_TRUE(failed_with(back.at(1), Errc::stopped));
    EXPECT_FALSE(doors.entered(1));
  }
}

/// Answers with the name of the thread that runs the query.
struct Named {
  static constexpr const char* kName = "named";
  using Query = std::uint64_t;
  using Answer = std::array<char, 16>;
  struct State {
    std::uint64_t unused;
  };

  template <class Group>
  static void answer(Group, const State&, const Query*, Answer* answer) {
    ::pthread_getname_np(::pthread_self(), answer->data(), answer->size());
  }
};

/// Number of queries that the device's own threads answer.
std::size_t answered_by_device(Schedule schedule, std::uint32_t threads) {
  constexpr std::size_t kQueries = 50;
  const Device device = Device::parse("cpu");
  Engine engine(device, serve::make_operator<Named>({}, [](Device) { return serve::make_state(Named::State{}); }),
                plan_of(schedule, threads, 2));
  Client client = engine.connect();
  std::size_t by_device = 0;
  for (std::uint64_t i = 0; i < kQueries; ++i) {
    Named::Answer name{};
    EXPECT_TRUE(client.ask(std::as_bytes(std::span(&i, 1)), std::as_writable_bytes(std::span(&name, 1))));
    if (std::string_view(name.data()) == "headrace-worker") ++by_device;
  }
  return by_device;
}

TEST(ScheduleOrder, EnginesWhoseThreadsFillTheProcessorsRunTheirBatches) {
  const DeviceProperties properties = Device::parse("cpu").properties();
  const auto processors =
      static_cast<std::uint32_t>(properties.multiprocessor_count * properties.threads_per_multiprocessor);
  for (const Schedule schedule : {Schedule::pipelined, Schedule::graph}) {
    SCOPED_TRACE(to_string(schedule));
    EXPECT_EQ(answered_by_device(schedule, processors), 0U);
    if (processors > 1) {
      EXPECT_EQ(answered_by_device(schedule, 1), 50U) << "there are processors for both";
    }
  }
}

}  // namespace
}  // namespace headrace::testing
