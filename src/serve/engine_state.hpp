#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/serve/engine.hpp"

namespace headrace::serve::detail {

/// A query that a worker has taken up.
struct Job {
  Lane* lane;
  std::uint64_t position;
};

/// Counters of one worker; it alone writes them.
struct alignas(kNoSharing) WorkerCounters {
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> cancelled{0};
  std::atomic<std::uint64_t> expired{0};
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::int64_t> queue_ns{0};
  std::atomic<std::int64_t> copy_in_ns{0};
  std::atomic<std::int64_t> kernel_ns{0};
  std::atomic<std::int64_t> copy_out_ns{0};
  std::atomic<std::int64_t> host_ns{0};
};

/// What an engine, its workers and its clients share. Lives as long as any of them.
class EngineState {
 public:
  /// Throws what Engine's constructor throws.
  EngineState(Device device, Operator op, Plan plan);
  /// Stops.
  ~EngineState();

  // --- clients
  [[nodiscard]] Lane& take_lane();
  void give_lane(Lane& lane) noexcept;
  [[nodiscard]] bool sampled(std::uint64_t position) const noexcept {
    return plan.sample_stages_every != 0 && position % plan.sample_stages_every == 0;
  }
  /// Called after every publish: wakes a worker, or answers the lane's queries when there are no workers (any more).
  void published(Lane& lane) noexcept;

  // --- workers
  /// The next query for worker `worker`, which sleeps when there is none; empty once the engine stops and none is left.
  [[nodiscard]] std::optional<Job> next_job(std::uint32_t worker) noexcept;
  /// Why `job` must not be run (cancelled, expired, stopping, device fault), or ok.
  [[nodiscard]] Status admissible(const Job& job) const noexcept;
  /// Hands the outcome of `job` to its client and counts it.
  void complete(const Job& job, Status status, WorkerCounters& counters) noexcept;

  // --- stopping
  void stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool all_answered() const noexcept;

  const Device device;
  const Operator op;
  const Plan plan;
  LoadedState loaded;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<WorkerCounters> counters;  ///< One a worker.
  std::vector<std::jthread> workers;

 private:
  [[nodiscard]] std::optional<Job> try_claim(std::uint32_t worker) noexcept;
  void answer_without_worker(Lane& lane, Status status) noexcept;

  Parking worker_parking_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};  ///< No worker is left, or there never was one.
  std::atomic<bool> faulted_{false};
  std::atomic<int> fault_native_{0};
  std::mutex lanes_mutex_;
  std::vector<Lane*> free_lanes_;
  std::once_flag stopped_;

  friend class headrace::serve::Engine;
};

}  // namespace headrace::serve::detail
