#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/strand.hpp"
#include "device/cpu/workers.hpp"
#include "headrace/base/detail/clock.hpp"

namespace headrace::detail {
namespace {

/// Workers that no test before has used. They are never destroyed, and stay where a leak checker finds them.
[[nodiscard]] Workers& one_worker() {
  static auto& all = *new std::vector<std::unique_ptr<Workers>>;
  return *all.emplace_back(std::make_unique<Workers>(1));
}

/// One worker thread.
class CpuWorkers : public ::testing::Test {
 protected:
  CpuWorkers() { EXPECT_TRUE(workers_.add_user().ok()); }
  ~CpuWorkers() override { workers_.remove_user(); }

  [[nodiscard]] Ref<Strand> strand(Priority priority = Priority::normal) {
    return Ref<Strand>::adopt(new Strand(workers_, {.priority = priority}));
  }
  /// Runs `work` in `on`. `work` must exist until it has run.
  static void call(Strand& on, std::function<void()>& work) {
    const Status queued = on.enqueue<CallTask>(TaskKind::call, [&](CallTask& task) {
      task.function = [](void* argument) { (*static_cast<std::function<void()>*>(argument))(); };
      task.argument = &work;
    });
    EXPECT_TRUE(queued.ok());
  }
  /// Returns once the worker has run the strand for a millisecond and has left it.
  void use_time(Strand& strand) {
    std::function<void()> work = [] {
      const Time until = SteadyClock::now() + std::chrono::milliseconds(1);
      while (SteadyClock::now() < until) continue;
    };
    call(strand, work);
    strand.wait(strand.enqueued());
    std::function<void()> nothing = [] {};
    call(*other_, nothing);
    other_->wait(other_->enqueued());
  }

  Workers& workers_ = one_worker();
  Ref<Strand> other_ = strand();
};

TEST_F(CpuWorkers, RunTheStrandFirstThatHasUsedLeast) {
  const Ref<Strand> gate = strand();
  const Ref<Strand> much = strand();
  const Ref<Strand> also_much = strand();
  const Ref<Strand> little = strand();
  const Ref<Strand> urgent = strand(Priority::high);
  use_time(*much);
  use_time(*also_much);
  use_time(*urgent);
  std::atomic<bool> held{false};
  std::atomic<bool> open{false};
  std::function<void()> hold = [&] {
    held = true;
    held.notify_all();
    open.wait(false);
  };
  call(*gate, hold);
  held.wait(false);
  std::string order;
  std::function<void()> note_much = [&] { order += 'm'; };
  std::function<void()> note_also_much = [&] { order += 'a'; };
  std::function<void()> note_little = [&] { order += 'l'; };
  std::function<void()> note_urgent = [&] { order += 'u'; };
  call(*also_much, note_also_much);
  call(*much, note_much);
  call(*little, note_little);
  call(*urgent, note_urgent);
  const Duration more = also_much->used() - much->used();  // no thread runs them now
  open = true;
  open.notify_all();
  for (const auto& one : {much, also_much, little, urgent}) one->wait(one->enqueued());
  EXPECT_EQ(order, more <= Duration::zero() ? "ulam" : "ulma");
  gate->wait(gate->enqueued());
}

TEST_F(CpuWorkers, GiveNoCreditForIdleTime) {
  const Ref<Strand> busy = strand();
  const Ref<Strand> fresh = strand();
  use_time(*busy);
  use_time(*busy);  // taken with a millisecond of use
  use_time(*fresh);
  EXPECT_GE(fresh->used(), std::chrono::milliseconds(2));  // its own millisecond, and that of the other
}

}  // namespace
}  // namespace headrace::detail
