#include <sched.h>

#include <filesystem>
#include <fstream>

#include "headrace/device/detail/mailbox.hpp"
#include "headrace/device/topology.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

/// Promises that only a CPU device makes for its streams: which thread runs which task, and in what order.
namespace headrace::testing {
namespace {

struct Note {
  std::thread::id ran_on;
  std::atomic<bool> ran{false};
  static void write(void* self) {
    auto* note = static_cast<Note*>(self);
    note->ran_on = std::this_thread::get_id();
    note->ran.store(true);
  }
};

struct Letter {
  std::string* text;
  char letter;
  static void write(void* self) {
    auto* letter = static_cast<Letter*>(self);
    letter->text->push_back(letter->letter);
  }
};

/// Number of threads of this process with that name.
int threads_named(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string found;
    if (std::getline(comm, found) && found == name) ++count;
  }
  return count;
}

int worker_count(Device device) {
  const auto& properties = device.properties();
  return std::max(2, properties.multiprocessor_count * properties.threads_per_multiprocessor);
}

TEST(CpuStreamTest, HighPriorityGoesFirst) {
  const Device device = Device::parse("cpu:5");  // no other test's streams on its workers
  std::vector<Stream> held;
  for (int i = 0; i < worker_count(device); ++i) held.emplace_back(device);
  Stream normal(device);
  Stream high(device, {.priority = Priority::high});
  std::vector<Gate> gates(held.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    ASSERT_OK(gates[i].enqueue(held[i]));
    gates[i].wait_entered();
  }
  std::string order;
  Letter n{&order, 'n'};
  Letter h{&order, 'h'};
  ASSERT_OK(normal.call(&Letter::write, &n));
  ASSERT_OK(normal.call(&Letter::write, &n));
  ASSERT_OK(high.call(&Letter::write, &h));
  ASSERT_OK(high.call(&Letter::write, &h));
  gates[0].open();  // one worker for both
  ASSERT_OK(normal.wait());
  ASSERT_OK(high.wait());
  EXPECT_EQ(order, "hhnn");
}

TEST(CpuStreamTest, ParkedStreamsHoldNoWorker) {
  const Device device = Device::parse("cpu:5");
  Stream first(device);
  Event event(device);
  std::vector<Stream> waiting;
  for (int i = 0; i < 8 * worker_count(device); ++i) waiting.emplace_back(device);
  std::vector<Note> notes(waiting.size());
  Stream free(device);
  Gate gate;
  ASSERT_OK(gate.enqueue(first));
  ASSERT_OK(first.record(event));
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_OK(waiting[i].wait_for(event));
    ASSERT_OK(waiting[i].call(&Note::write, &notes[i]));
  }
  Note proceeds;
  ASSERT_OK(free.call(&Note::write, &proceeds));
  ASSERT_OK(free.wait());
  EXPECT_TRUE(proceeds.ran);
  for (const Note& note : notes) EXPECT_FALSE(note.ran);
  gate.open();
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_OK(waiting[i].wait());
    EXPECT_TRUE(notes[i].ran);
  }
}

TEST(CpuStreamTest, RunInWaiterStartsWhenSomebodyWaitsAndRunsThere) {
  const Device device = Device::parse("cpu");
  Note by_wait;
  Note by_ready;
  Note by_event;
  Note after;  // which runs while the stream ends
  Stream lazy(device, {.run_in_waiter = true});
  Stream other(device);
  ASSERT_OK(lazy.call(&Note::write, &by_wait));
  Note passes;
  ASSERT_OK(other.call(&Note::write, &passes));
  ASSERT_OK(other.wait());
  EXPECT_FALSE(by_wait.ran) << "no thread has waited for it yet";
  EXPECT_NE(passes.ran_on, std::this_thread::get_id());
  ASSERT_OK(lazy.wait());
  EXPECT_EQ(by_wait.ran_on, std::this_thread::get_id());

  ASSERT_OK(lazy.call(&Note::write, &by_ready));
  EXPECT_TRUE(*lazy.ready()) << "ready() runs the work";
  EXPECT_EQ(by_ready.ran_on, std::this_thread::get_id());

  Event event(device);
  ASSERT_OK(lazy.call(&Note::write, &by_event));
  ASSERT_OK(lazy.record(event));
  ASSERT_OK(lazy.call(&Note::write, &after));
  ASSERT_OK(event.wait());
  EXPECT_EQ(by_event.ran_on, std::this_thread::get_id());
  EXPECT_FALSE(after.ran) << "waiting for an event runs the work before it and no more";
}

TEST(CpuStreamTest, WorkersRunRunInWaiterWorkOnlyUpToWhatTheirStreamNeeds) {
  const Device device = Device::parse("cpu");
  Stream lazy(device, {.run_in_waiter = true});
  Stream ordinary(device);
  Event event(device);
  Note before;
  Note after;
  Note dependent;
  ASSERT_OK(lazy.call(&Note::write, &before));
  ASSERT_OK(lazy.record(event));
  ASSERT_OK(lazy.call(&Note::write, &after));
  ASSERT_OK(ordinary.wait_for(event));
  ASSERT_OK(ordinary.call(&Note::write, &dependent));
  ASSERT_TRUE(eventually([&] { return dependent.ran.load(); })) << "no thread waits, so the workers must run it";
  EXPECT_TRUE(before.ran);
  EXPECT_NE(before.ran_on, std::this_thread::get_id());
  EXPECT_FALSE(after.ran);
  ASSERT_OK(lazy.wait());
  EXPECT_EQ(after.ran_on, std::this_thread::get_id());
}

TEST(CpuStreamTest, ChainOfRunInWaiterStreamsRunsInTheLastWaiter) {
  const Device device = Device::parse("cpu");
  constexpr std::size_t kLength = 200;
  std::vector<Stream> chain;
  std::vector<Note> notes(kLength);
  std::vector<Event> events;
  for (std::size_t i = 0; i < kLength; ++i) {
    chain.emplace_back(device, StreamOptions{.run_in_waiter = true});
    events.emplace_back(device);
  }
  for (std::size_t i = 0; i < kLength; ++i) {
    if (i > 0) {
      ASSERT_OK(chain[i].wait_for(events[i - 1]));
    }
    ASSERT_OK(chain[i].call(&Note::write, &notes[i]));
    ASSERT_OK(chain[i].record(events[i]));
  }
  EXPECT_FALSE(notes[0].ran);
  ASSERT_OK(events.back().wait());
  for (const Note& note : notes) EXPECT_EQ(note.ran_on, std::this_thread::get_id());
}

TEST(CpuStreamTest, WorkersRunAChainOfRunInWaiterStreamsForAnOrdinaryOne) {
  const Device device = Device::parse("cpu");
  constexpr std::size_t kLength = 50;
  std::vector<Stream> chain;
  std::vector<Note> notes(kLength + 1);
  std::vector<Event> events;
  for (std::size_t i = 0; i < kLength; ++i) {
    chain.emplace_back(device, StreamOptions{.run_in_waiter = true});
    events.emplace_back(device);
    if (i > 0) {
      ASSERT_OK(chain[i].wait_for(events[i - 1]));
    }
    ASSERT_OK(chain[i].call(&Note::write, &notes[i]));
    ASSERT_OK(chain[i].record(events[i]));
  }
  Stream ordinary(device);
  ASSERT_OK(ordinary.wait_for(events.back()));
  ASSERT_OK(ordinary.call(&Note::write, &notes.back()));
  ASSERT_TRUE(eventually([&] { return notes.back().ran.load(); }));
  for (const Note& note : notes) EXPECT_NE(note.ran_on, std::this_thread::get_id());
}

TEST(CpuStreamTest, ResidentKernelOnARunInWaiterStream) {
  const Device device = Device::parse("cpu");
  Mailbox boxes(device, 2, 16, 16);
  Stream lazy(device, {.run_in_waiter = true});
  Note after;
  ASSERT_OK(launch_resident(lazy, echo_kernel(), {.blocks = 2}, boxes.view(), 4U));
  ASSERT_OK(lazy.call(&Note::write, &after));
  boxes.post(1);
  EXPECT_FALSE(*lazy.ready()) << "ready() starts the kernel, which stays";
  EXPECT_TRUE(eventually([&] { return boxes.ready(1); }));
  EXPECT_FALSE(after.ran);
  boxes.stop();
  ASSERT_OK(lazy.wait());
  EXPECT_EQ(after.ran_on, std::this_thread::get_id());
}

TEST(CpuStreamTest, ResidentKernelsHoldNoWorker) {
  const Device device = Device::parse("cpu:5");
  Mailbox boxes(device, 1, 16, 16);
  std::vector<Stream> streams;
  for (int i = 0; i < 3 * worker_count(device); ++i) {
    streams.emplace_back(device);
    ASSERT_OK(launch_resident(streams.back(), echo_kernel(), {.blocks = 1}, boxes.view(), 4U));
  }
  Stream free(device);
  Note note;
  ASSERT_OK(free.call(&Note::write, &note));
  EXPECT_OK(free.wait());
  EXPECT_TRUE(note.ran);
  boxes.stop();
}

TEST(CpuStreamTest, RunInWaiterWaitsForAnOrdinaryStream) {
  const Device device = Device::parse("cpu");
  Stream ordinary(device);
  Stream lazy(device, {.run_in_waiter = true});
  Event event(device);
  Note note;
  Gate gate;
  ASSERT_OK(gate.enqueue(ordinary));
  ASSERT_OK(ordinary.record(event));
  ASSERT_OK(lazy.wait_for(event));
  ASSERT_OK(lazy.call(&Note::write, &note));
  EXPECT_FALSE(*lazy.ready()) << "it is held back, and ready() does not wait";
  EXPECT_FALSE(note.ran);
  gate.open();
  ASSERT_OK(lazy.wait());
  EXPECT_EQ(note.ran_on, std::this_thread::get_id());
}

TEST(CpuStreamTest, TwoThreadsWaitOnOneRunInWaiterStream) {
  const Device device = Device::parse("cpu");
  Stream lazy(device, {.run_in_waiter = true});
  Event first(device);
  Note a;
  Note b;
  Gate gate;
  ASSERT_OK(gate.enqueue(lazy));
  ASSERT_OK(lazy.call(&Note::write, &a));
  ASSERT_OK(lazy.record(first));
  ASSERT_OK(lazy.call(&Note::write, &b));
  std::thread early([&] { EXPECT_OK(first.wait()); });
  gate.wait_entered();  // `early` owns the strand and will stop before b
  std::thread late([&] { EXPECT_OK(lazy.wait()); });
  const std::thread::id late_id = late.get_id();
  const std::thread::id early_id = early.get_id();
  gate.open();
  early.join();
  late.join();
  EXPECT_EQ(a.ran_on, early_id);
  EXPECT_EQ(b.ran_on, late_id);
}

TEST(CpuStreamTest, ThreadsLeaveAfterTheLastStream) {
  const Device device = Device::parse("cpu:5");
  {
    Mailbox boxes(device, 3, 16, 16);
    Stream first(device);
    Stream second(device);
    EXPECT_TRUE(eventually([] { return threads_named("headrace-worker") >= 1; }));  // a thread names itself
    ASSERT_OK(launch_resident(first, echo_kernel(), {.blocks = 3}, boxes.view(), 4U));
    EXPECT_TRUE(eventually([] { return threads_named("headrace-block") == 3; }));
    boxes.stop();
  }
  EXPECT_EQ(threads_named("headrace-block"), 0);
  EXPECT_TRUE(eventually([] { return threads_named("headrace-worker") == 0; }));
  Stream again(device);
  Note note;
  ASSERT_OK(again.call(&Note::write, &note));
  ASSERT_OK(again.wait());
  EXPECT_TRUE(note.ran);
}

TEST(CpuStreamTest, WorkersIgnoreTheBindingOfTheThreadThatStartsThem) {
  const auto processors = Topology::machine().processors();
  if (processors.size() < 2) GTEST_SKIP() << "needs two processors";
  const Device device = Device::parse("cpu:6");
  std::thread([&] {
    ASSERT_OK(bind_this_thread(processors.front()));
    cpu_set_t seen;
    CPU_ZERO(&seen);
    Stream stream(device);
    ASSERT_OK(
        stream.call([](void* set) { sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(set)); }, &seen));
    ASSERT_OK(stream.wait());
    EXPECT_EQ(static_cast<std::size_t>(CPU_COUNT(&seen)), processors.size());
  }).join();
}

TEST(CpuStreamTest, EventsCrossDevices) {
  const Device one = Device::parse("cpu:1");
  const Device two = Device::parse("cpu:2");
  EXPECT_FALSE(one == two);
  Stream first(one);
  Stream second(two);
  Event event(one);
  Note note;
  Gate gate;
  ASSERT_OK(gate.enqueue(first));
  ASSERT_OK(first.record(event));
  ASSERT_OK(second.wait_for(event));
  ASSERT_OK(second.call(&Note::write, &note));
  EXPECT_FALSE(*second.ready());
  gate.open();
  ASSERT_OK(second.wait());
  EXPECT_TRUE(note.ran);
}

TEST(CpuStreamTest, NullPointersAreRefused) {
  Stream stream(Device::parse("cpu"));
  std::byte byte{};
  EXPECT_TRUE(failed_with(stream.copy(nullptr, &byte, 1), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(stream.copy(&byte, nullptr, 1), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(stream.fill(nullptr, 0, 1), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(stream.call(nullptr, nullptr), Errc::invalid_argument));
  const Copy bad{&byte, nullptr, 1};
  EXPECT_TRUE(failed_with(stream.copy_many({&bad, 1}), Errc::invalid_argument));
  EXPECT_TRUE(*stream.ready()) << "no part of it was enqueued";
}

}  // namespace
}  // namespace headrace::testing
