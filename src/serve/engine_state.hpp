#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/first_error.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/serve/engine.hpp"
#include "serve/direct_memory.hpp"
#include "serve/resident.hpp"
#include "serve/worker_counters.hpp"

namespace headrace::serve::detail {

/// Whether clients and device share their slots with no engine thread between them.
[[nodiscard]] constexpr bool is_direct(Schedule schedule) noexcept {
  return schedule == Schedule::dispatched || schedule == Schedule::none;
}

/// A query that a worker has taken up.
struct Job {
  Lane* lane;
  std::uint64_t position;
};

/// What an engine, its workers and its clients share. Lives as long as any of them.
class EngineState : public std::enable_shared_from_this<EngineState> {
 public:
  /// Throws what Engine's constructor throws.
  EngineState(Device device, Operator op, Plan plan);
  /// Stops.
  ~EngineState();

  // --- clients
  [[nodiscard]] LaneRef take_lane();
  void give_lane(LaneRef lane) noexcept;
  [[nodiscard]] bool sampled(std::uint64_t position) const noexcept {
    return plan.sample_stages_every != 0 && position % plan.sample_stages_every == 0;
  }
  /// Called after every publish: wakes a worker, or answers the lane's queries when there are no workers (any more).
  void published(Lane& lane) noexcept;

  // --- workers
  /// The next query for worker `worker`, which sleeps when there is none; empty once the engine stops and none is left,
  /// or when there has been none by `until` (on SteadyClock).
  [[nodiscard]] std::optional<Job> next_job(std::uint32_t worker, Time until = Time::max()) noexcept;
  /// The next query for worker `worker`, or empty at once.
  [[nodiscard]] std::optional<Job> try_job(std::uint32_t worker) noexcept;
  /// Appends queries that are there to `jobs`, which has room for `most` in all, until it holds so many.
  void try_jobs(std::uint32_t worker, std::size_t most, std::vector<Job>& jobs) noexcept;
  /// Why `job` must not be run (cancelled, expired, stopping, device fault), or ok.
  [[nodiscard]] Status admissible(const Job& job) const noexcept;
  /// Hands the outcome of `job` to its client and counts it.
  void complete(const Job& job, Status status, WorkerCounters& counters) noexcept;

  // --- failing
  /// The engine can serve no more: queries in flight and those that come are failed with `error`. The first call
  /// counts. Any thread.
  void fail(Error error) noexcept;
  [[nodiscard]] std::optional<Error> fault() const noexcept;

  // --- stopping
  void stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool all_answered() const noexcept;

  const Birth birth;
  const Device device;
  const Operator op;
  const Plan plan;
  LoadedState loaded;
  std::vector<std::unique_ptr<Lane>> lanes;  ///< Empty where lanes are direct, and the other way round.
  std::shared_ptr<const DirectMemory> direct_memory;
  std::vector<std::unique_ptr<DirectLane>> direct_lanes;
  std::vector<WorkerCounters> counters;  ///< One a worker, or a client where lanes are direct; async has two a thread.
  std::vector<std::jthread> workers;
  std::atomic<double> share{plan.share};  ///< See Engine::share().
  std::unique_ptr<Watchdog> watchdog;     ///< The watchdog of engines with resident kernels.

 private:
  void answer_without_worker(Lane& lane, Status status) noexcept;

  Parking worker_parking_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};  ///< No worker is left, or there never was one.
  FirstError fault_;
  std::mutex lanes_mutex_;
  std::vector<LaneRef> free_lanes_;
  std::once_flag stopped_;

  friend class headrace::serve::Engine;
};

}  // namespace headrace::serve::detail
