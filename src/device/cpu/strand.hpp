#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

#include "device/cpu/ref.hpp"
#include "device/cpu/task_queue.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

class Strand;
class Workers;

/// A point of a strand, reached when `sequence` of its tasks are done. A recorded event is such a point.
struct StrandPoint {
  Ref<Strand> strand;
  std::uint64_t sequence = 0;

  [[nodiscard]] bool reached() const noexcept;
};

/// A list of references to strands. A strand is on at most one list.
class StrandList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Appends a strand.
  void push(Ref<Strand> strand) noexcept;
  /// Inserts a strand behind those that have used no more time of workers than it has.
  void push_by_use(Ref<Strand> strand) noexcept;
  /// The first, or an empty Ref.
  [[nodiscard]] Ref<Strand> pop() noexcept;

 private:
  Strand* first_ = nullptr;
  Strand* last_ = nullptr;
};

/// The state of a stream: a queue of tasks, of which the owner of the strand runs one at a time. The owner is a worker
/// thread, or a waiting thread if the stream runs in its waiter. Reference-counted, because events outlive streams.
///
/// Two counters describe the progress: `enqueued_` counts tasks added, `done_` counts tasks finished. A point of the
/// strand is a value of `enqueued_`; to wait for it is to wait until `done_` reaches that value.
class Strand final : public RefCounted {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  Strand(Workers& workers, StreamOptions options) noexcept;

  /// Allocates the first memory of the queue, so that short queues never allocate. False if there is no memory.
  [[nodiscard]] bool reserve() noexcept { return queue_.reserve(1); }

  [[nodiscard]] bool high_priority() const noexcept { return high_priority_; }
  /// Whether the strand was made before a fork: no thread of this process runs it. It refuses tasks, and waits return
  /// at once.
  [[nodiscard]] bool inherited() const noexcept { return birth_.inherited(); }
  [[nodiscard]] std::uint64_t enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  /// If true, everything that the first `sequence` tasks wrote is visible.
  [[nodiscard]] bool reached(std::uint64_t sequence) const noexcept {
    return done_.load(std::memory_order_acquire) >= sequence;
  }

  /// Appends a task of `bytes` bytes; `write(T&)` fills it in. Errc::out_of_memory leaves the queue as it was.
  template <class T, class Write>
  [[nodiscard]] Status enqueue(TaskKind kind, std::size_t bytes, Write write) noexcept {
    if (inherited()) return kInherited;
    Workers* runner = nullptr;
    {
      const std::lock_guard lock(mutex_);
      T* task = queue_.push<T>(kind, bytes);
      if (task == nullptr) return Errc::out_of_memory;
      write(*task);
      runner = publish(1);
    }
    if (runner != nullptr) schedule(*runner);
    return {};
  }
  template <class T, class Write>
  [[nodiscard]] Status enqueue(TaskKind kind, Write write) noexcept {
    return enqueue<T>(kind, sizeof(T), write);
  }
  /// Appends the copies as few tasks. Appends all of them or, with Errc::out_of_memory, none.
  [[nodiscard]] Status enqueue_copies(std::span<const Copy> copies) noexcept;

  /// Returns once the point `sequence` is reached. If the strand runs in its waiter, this thread runs it. Returns at
  /// once if the strand is inherited.
  void wait(std::uint64_t sequence) noexcept;
  /// Whether the point is reached. If the strand runs in its waiter, first runs the tasks that can run. Does not wait.
  [[nodiscard]] bool poll(std::uint64_t sequence) noexcept;

  /// Time that workers have run this strand, for the order of the ready list. Only the thread that has taken it from
  /// the list, or that holds the list's lock, may call this and the next function.
  [[nodiscard]] Duration used() const noexcept { return used_; }
  /// Counts a strand that has had less as if it had had `least`, so that idle time is no credit.
  void catch_up(Duration least) noexcept { used_ = std::max(used_, least); }

  /// For a worker that took this strand from the ready list: runs tasks until none is left, one is blocked, or another
  /// strand should have its turn.
  void run_in_worker(Workers& workers) noexcept;
  /// For the last thread of a resident launch: the task that started it is done.
  void resident_done() noexcept;
  /// For a thread of a resident launch whose block threw: marks the CPU device's equivalent of a device fault.
  void fault() noexcept { faulted_.store(true, std::memory_order_release); }
  [[nodiscard]] bool faulted() const noexcept { return faulted_.load(std::memory_order_acquire); }

 private:
  friend class StrandList;

  /// Which thread may access the front of the queue.
  enum class State : std::uint8_t {
    idle,    ///< No thread.
    queued,  ///< No thread; the strand is on its workers' ready list.
    owned,   ///< The thread that runs it.
    parked,  ///< No thread until the awaited point is reached or the resident kernel ends.
  };
  /// Why drain() returned.
  enum class Stop : std::uint8_t { reached, empty, blocked, resident, yielded };
  /// The result of running the task at the front.
  enum class Outcome : std::uint8_t { done, blocked, resident };

  /// Lock held: adds `tasks` to the count. If the result is not null, the state is queued and the caller must call
  /// schedule().
  [[nodiscard]] Workers* publish(std::uint64_t tasks) noexcept;
  /// Lock held: the strand has no owner any more. Returns the same as publish().
  [[nodiscard]] Workers* settle() noexcept;
  /// Lock not held: puts the strand, whose state is queued, on the ready list.
  void schedule(Workers& runner) noexcept;
  void settle_and_schedule() noexcept;

  /// Called by the owner: runs tasks until `sequence` are done. Asks `workers`, if given, whether to yield.
  [[nodiscard]] Stop drain(std::uint64_t sequence, const Workers* workers) noexcept;
  [[nodiscard]] Outcome run(Task& task) noexcept;
  void finish_front() noexcept;
  /// Wakes threads and strands that wait for a point up to `done`.
  void wake(std::uint64_t done) noexcept;

  [[nodiscard]] bool try_own() noexcept;
  /// Advances the strand towards `sequence`: runs it, or waits (only if `may_wait`). Stores the point that blocks it in
  /// `obstacle`.
  void advance(std::uint64_t sequence, bool may_wait, StrandPoint& obstacle) noexcept;
  [[nodiscard]] bool finish(std::uint64_t sequence, bool may_wait) noexcept;
  void block(std::uint64_t sequence) noexcept;

  /// Parks `waiter` (state parked) until `sequence` is reached. False if it is already reached.
  [[nodiscard]] bool park(Ref<Strand> waiter, std::uint64_t sequence) noexcept;
  /// A strand run by `workers` depends on `sequence`. If this strand runs in its waiter, the workers run it up to
  /// there.
  void demand(std::uint64_t sequence, Workers& workers) noexcept;

  void last_ref_dropped() noexcept override {
    if (!inherited()) delete this;  // threads of the parent may count as waiting on its condition variable
  }

  const bool high_priority_;
  const bool run_in_waiter_;
  const Birth birth_;

  std::atomic<bool> faulted_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  TaskQueue queue_;                  ///< TaskQueue documents which thread may call what.
  State state_ = State::idle;        ///< Under mutex_.
  Workers* workers_;                 ///< Under mutex_; the workers that run this strand when it is queued.
  std::uint64_t demanded_ = 0;       ///< Under mutex_; workers run a run_in_waiter strand up to here.
  std::uint32_t blocked_count_ = 0;  ///< Under mutex_; threads in block().
  StrandList parked_;                ///< Under mutex_; strands that wait for a point of this one.

  Duration used_{};                 ///< See used().
  Strand* next_ = nullptr;          ///< The next strand on the same list.
  std::uint64_t parked_until_ = 0;  ///< Point of the strand that this one is parked on; under that strand's mutex_.

  alignas(kNoSharing) std::atomic<std::uint64_t> enqueued_{0};  ///< Written under mutex_.
  alignas(kNoSharing) std::atomic<std::uint64_t> done_{0};      ///< Written by the owner.
  /// Lowest point that a thread or strand waits for. Written under mutex_. A waiter stores this and then loads done_;
  /// the owner stores done_ and then loads this. All are sequentially consistent, so one of them sees the other.
  std::atomic<std::uint64_t> wake_at_{kNever};
};

inline bool StrandPoint::reached() const noexcept { return !strand || strand->reached(sequence); }

}  // namespace headrace::detail
