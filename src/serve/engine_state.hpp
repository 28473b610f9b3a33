#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/first_error.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/serve/detail/client_limits.hpp"
#include "headrace/serve/engine.hpp"
#include "serve/caller_streams.hpp"
#include "serve/direct_memory.hpp"
#include "serve/resident.hpp"
#include "serve/worker_counters.hpp"

namespace headrace::serve::detail {

/// Whether clients and device share the slots without an engine thread in between.
[[nodiscard]] constexpr bool is_direct(Schedule schedule) noexcept {
  return schedule == Schedule::dispatched || schedule == Schedule::none;
}

/// A query that a worker has taken.
struct Job {
  Lane* lane;
  std::uint64_t position;
};

/// The state that an engine, its workers and its clients share. Lives as long as any of them.
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
  /// Called after every publish: wakes a worker, or answers the lane's queries if there are no workers (any more).
  void published(Lane& lane) noexcept;

  // --- workers
  // A worker takes at most kTurn queries, or a batch, from a lane before it goes on to the next one that has any. A
  // client that always has queries waiting thus holds up no other.

  /// The next query for worker `worker`, which sleeps while there is none. Empty once the engine stops and none is
  /// left, or if none arrives by `until` (on SteadyClock).
  [[nodiscard]] std::optional<Job> next_job(std::uint32_t worker, Time until = Time::max()) noexcept;
  /// The next query for worker `worker`; empty, without waiting, if there is none.
  [[nodiscard]] std::optional<Job> try_job(std::uint32_t worker) noexcept;
  /// Appends waiting queries to `jobs`, which has room for `most`, until it holds that many.
  void try_jobs(std::uint32_t worker, std::size_t most, std::vector<Job>& jobs) noexcept;
  /// Why `job` must not run (cancelled, expired, stopping, device fault), or ok.
  [[nodiscard]] Status admissible(const Job& job) const noexcept;
  /// Passes the outcome of `job` to its client and counts it.
  void complete(const Job& job, Status status, WorkerCounters& counters) noexcept;

  // --- failing
  /// Marks the engine as failed: queries in flight and later ones fail with `error`. Only the first call counts. Any
  /// thread.
  void fail(Error error) noexcept;
  [[nodiscard]] std::optional<Error> fault() const noexcept;

  // --- changing
  /// The plan in force. Any thread.
  [[nodiscard]] Plan plan_now() const;
  /// See Engine::change().
  void change(const PlanChange& change);

  // --- stopping
  void stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool all_answered() const noexcept;

  const Birth birth;
  const Device device;
  const Operator op;
  const Plan plan;  ///< As it was given. For what may have changed since, see plan_now().
  ClientLimits limits{plan};
  LoadedState loaded;
  CallerStreams caller_streams{device};      ///< Reads `loaded`.
  std::vector<std::unique_ptr<Lane>> lanes;  ///< Empty if lanes are direct; direct_lanes is empty otherwise.
  std::shared_ptr<const DirectMemory> direct_memory;
  std::vector<std::unique_ptr<DirectLane>> direct_lanes;
  std::vector<WorkerCounters> counters;  ///< One per worker or direct client; async has two per thread.
  std::vector<std::jthread> workers;
  std::unique_ptr<Watchdog> watchdog;  ///< The watchdog of engines with resident kernels.

 private:
  static constexpr std::uint32_t kTurn = 8;
  /// Where one worker looks for queries first.
  struct alignas(kNoSharing) Turn {
    std::size_t lane = 0;
    std::uint32_t taken = 0;  ///< Queries taken from that lane in a row.
  };

  void answer_without_worker(Lane& lane, Status status) noexcept;
  [[nodiscard]] std::size_t after(std::size_t lane) const noexcept { return lane + 1 < lanes.size() ? lane + 1 : 0; }

  std::vector<Turn> turns_;  ///< One per worker.
  Parking worker_parking_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};  ///< No worker is left, or there was none.
  FirstError fault_;
  std::mutex lanes_mutex_;
  std::vector<LaneRef> free_lanes_;
  std::once_flag stopped_;
  std::mutex changing_;  ///< One change at a time.
  std::atomic<double> share_{plan.share};

  friend class headrace::serve::Engine;
};

}  // namespace headrace::serve::detail
