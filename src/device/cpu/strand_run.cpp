#include <array>
#include <cstring>

#include "base/spin.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/memory.hpp"
#include "device/cpu/resident.hpp"
#include "device/cpu/strand.hpp"
#include "device/cpu/workers.hpp"

/// The part of Strand that runs tasks and waits for them.
namespace headrace::detail {

namespace {

void run_launch(LaunchTask& task) noexcept {
  std::array<void*, kKernelArgumentsMax> arguments{};
  for (std::uint32_t i = 0; i < task.argument_count; ++i) {
    arguments[i] = reinterpret_cast<std::byte*>(&task) + task.argument_offsets[i];
  }
  for (std::uint32_t item = 0; item < task.items; ++item) {
    task.entry(CpuGroup(0, 1, item, task.items), arguments.data());
  }
}

void run_copies(CopyManyTask& task) noexcept {
  const Copy* copies = reinterpret_cast<const Copy*>(&task + 1);
  for (std::uint64_t i = 0; i < task.count; ++i) {
    if (copies[i].bytes != 0) std::memcpy(copies[i].to, copies[i].from, copies[i].bytes);
  }
}

}  // namespace

Strand::Outcome Strand::run(Task& task) noexcept {
  switch (task.kind) {
    case TaskKind::copy: {
      const Copy& copy = static_cast<CopyTask&>(task).copy;
      std::memcpy(copy.to, copy.from, copy.bytes);
      break;
    }
    case TaskKind::copy_many: run_copies(static_cast<CopyManyTask&>(task)); break;
    case TaskKind::fill: {
      const auto& fill = static_cast<FillTask&>(task);
      std::memset(fill.to, fill.value, fill.size);
      break;
    }
    case TaskKind::launch: run_launch(static_cast<LaunchTask&>(task)); break;
    case TaskKind::resident: {
      ResidentLaunch& launch = *static_cast<ResidentTask&>(task).launch;
      {
        // Park before start(): the last thread of the launch may finish and own the strand before start() returns.
        const std::lock_guard lock(mutex_);
        state_ = State::parked;
      }
      launch.start();
      return Outcome::resident;
    }
    case TaskKind::call: {
      const auto& call = static_cast<CallTask&>(task);
      call.function(call.argument);
      break;
    }
    case TaskKind::stamp: {
      const auto& stamp = static_cast<StampTask&>(task);
      Ref<EventTime>::adopt(stamp.time)->take(stamp.number);
      break;
    }
    case TaskKind::wait: {
      const auto& wait = static_cast<WaitTask&>(task);
      if (!wait.strand->reached(wait.sequence)) return Outcome::blocked;
      wait.strand->drop_ref();
      break;
    }
    case TaskKind::free: {
      const auto& free = static_cast<FreeTask&>(task);
      free.memory->deallocate(MemoryKind::stream_ordered, free.data, free.size);
      break;
    }
    case TaskKind::next_chunk: break;
  }
  return Outcome::done;
}

Strand::Stop Strand::drain(std::uint64_t sequence, const Workers* workers) noexcept {
  constexpr int kTasksPerTurn = 64;
  for (int turn = 0;; ++turn) {
    const std::uint64_t done = done_.load(std::memory_order_relaxed);
    if (done >= sequence) return Stop::reached;
    if (done == enqueued_.load(std::memory_order_acquire)) return Stop::empty;
    if (workers != nullptr && turn > 0 && workers->should_yield(high_priority_, turn >= kTasksPerTurn)) {
      return Stop::yielded;
    }
    if (queue_.front().kind == TaskKind::next_chunk) {
      const std::lock_guard lock(mutex_);
      queue_.drop_chunk();
    }
    const Outcome outcome = run(queue_.front());
    if (outcome == Outcome::blocked) return Stop::blocked;
    if (outcome == Outcome::resident) return Stop::resident;
    finish_front();
  }
}

bool Strand::try_own() noexcept {
  const std::lock_guard lock(mutex_);
  if (state_ != State::idle) return false;
  state_ = State::owned;
  return true;
}

void Strand::block(std::uint64_t sequence) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (reached(sequence)) return;
    spin_pause();
  }
  std::unique_lock lock(mutex_);
  ++blocked_count_;
  while (true) {
    wake_at_.store(std::min(wake_at_.load(std::memory_order_relaxed), sequence), std::memory_order_seq_cst);
    if (done_.load(std::memory_order_seq_cst) >= sequence) break;
    if (run_in_waiter_ && state_ == State::idle) break;  // this thread can run it
    changed_.wait(lock);
  }
  --blocked_count_;
}

void Strand::advance(std::uint64_t sequence, bool may_wait, StrandPoint& obstacle) noexcept {
  if (run_in_waiter_ && try_own()) {
    const Stop stop = drain(sequence, nullptr);
    if (stop == Stop::resident) return;
    if (stop == Stop::blocked) {
      const auto& wait = static_cast<const WaitTask&>(queue_.front());
      obstacle = {Ref<Strand>(wait.strand), wait.sequence};
    }
    return settle_and_schedule();
  }
  if (may_wait) block(sequence);
}

bool Strand::finish(std::uint64_t sequence, bool may_wait) noexcept {
  while (!reached(sequence) && !inherited()) {
    Strand* here = this;
    std::uint64_t goal = sequence;
    Ref<Strand> held;
    // Follow the chain of strands that block each other. Recorded points are older than the waits for them, so the
    // chain has no cycle and is no longer than the number of strands.
    while (true) {
      StrandPoint obstacle;
      here->advance(goal, may_wait, obstacle);
      if (!obstacle.strand) break;
      held = std::move(obstacle.strand);
      here = held.get();
      goal = obstacle.sequence;
    }
    if (!may_wait && !here->reached(goal)) break;
  }
  return reached(sequence);
}

void Strand::wait(std::uint64_t sequence) noexcept { static_cast<void>(finish(sequence, true)); }
bool Strand::poll(std::uint64_t sequence) noexcept { return finish(sequence, false); }

}  // namespace headrace::detail
