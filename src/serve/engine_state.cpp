#include "serve/engine_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::serve::detail {

namespace {

Plan validated(Plan plan, Device device, const Operator& op) {
  validate(plan, device, op);
  return plan;
}

}  // namespace

EngineState::EngineState(Device device_in, Operator op_in, Plan plan_in)
    : device(device_in), op(std::move(op_in)), plan(validated(std::move(plan_in), device, op)), counters(plan.threads) {
  loaded = op.load(device);
  for (std::uint32_t i = 0; i < plan.clients_max; ++i) {
    lanes.push_back(std::make_unique<Lane>(device, plan.host_memory, op.query_bytes, op.answer_bytes, plan.slots));
    free_lanes_.push_back(lanes.back().get());
  }
  if (plan.schedule == Schedule::none) closed_.store(true, std::memory_order_seq_cst);
}

EngineState::~EngineState() { stop(); }

Lane& EngineState::take_lane() {
  const std::lock_guard lock(lanes_mutex_);
  if (free_lanes_.empty()) {
    throw UsageError(fmt::format("all {} lanes of the engine are taken: raise Plan::clients_max", plan.clients_max),
                     Errc::full);
  }
  Lane* const lane = free_lanes_.back();
  free_lanes_.pop_back();
  return *lane;
}

void EngineState::give_lane(Lane& lane) noexcept {
  const std::lock_guard lock(lanes_mutex_);
  free_lanes_.push_back(&lane);  // within capacity: the lane came from here
}

void EngineState::published(Lane& lane) noexcept {
  if (closed_.load(std::memory_order_seq_cst)) {
    answer_without_worker(lane, plan.schedule == Schedule::none ? Status{} : Status{Errc::stopped});
  } else {
    worker_parking_.notify_one();
  }
}

void EngineState::answer_without_worker(Lane& lane, Status status) noexcept {
  while (const auto position = lane.ring.try_claim()) {
    if (sampled(*position)) lane.control(*position).finished = SteadyClock::now();
    lane.complete(*position, status);
  }
}

std::optional<Job> EngineState::try_claim(std::uint32_t worker) noexcept {
  // Workers start at different lanes, so that they rarely meet.
  const std::size_t count = lanes.size();
  for (std::size_t i = 0; i < count; ++i) {
    Lane& lane = *lanes[(worker + i) % count];
    if (const auto position = lane.ring.try_claim()) return Job{&lane, *position};
  }
  return std::nullopt;
}

std::optional<Job> EngineState::next_job(std::uint32_t worker) noexcept {
  std::optional<Job> job = try_claim(worker);
  if (job) return job;
  const Time began = SteadyClock::now();
  while (!stopping()) {
    if (SteadyClock::now() - began < plan.spin) {
      job = try_claim(worker);
    } else {
      worker_parking_.wait_until(Time::max(), [&] {
        job = try_claim(worker);
        return job || stopping();
      });
    }
    if (job) return job;
  }
  return try_claim(worker);
}

Status EngineState::admissible(const Job& job) const noexcept {
  if (faulted_.load(std::memory_order_acquire)) {
    return Error{Errc::device_fault, fault_native_.load(std::memory_order_relaxed)};
  }
  if (stopping()) return Errc::stopped;
  const SlotControl& slot = job.lane->control(job.position);
  if (slot.cancelled.load(std::memory_order_acquire) == job.position + 1) return Errc::cancelled;
  if (slot.deadline != Time::max() && SteadyClock::now() > slot.deadline) return Errc::deadline_exceeded;
  return {};
}

void EngineState::complete(const Job& job, Status status, WorkerCounters& worker) noexcept {
  SlotControl& slot = job.lane->control(job.position);
  if (status && slot.deadline != Time::max() && SteadyClock::now() > slot.deadline) status = Errc::deadline_exceeded;
  if (status) {
    add_single_writer(worker.answered, std::uint64_t{1});
  } else {
    const Error error = status.error();
    auto& counter = error.code == Errc::cancelled           ? worker.cancelled
                    : error.code == Errc::deadline_exceeded ? worker.expired
                                                            : worker.failed;
    add_single_writer(counter, std::uint64_t{1});
    if (error.code == Errc::device_fault) {
      fault_native_.store(error.native, std::memory_order_relaxed);
      faulted_.store(true, std::memory_order_release);
    }
  }
  if (sampled(job.position)) slot.finished = SteadyClock::now();
  job.lane->complete(job.position, status);
}

bool EngineState::all_answered() const noexcept {
  for (const auto& lane : lanes) {
    const std::uint64_t published = lane->ring.published();
    const std::uint64_t oldest = published > plan.slots ? published - plan.slots : 0;
    for (std::uint64_t position = std::max(oldest, lane->ring.released()); position < published; ++position) {
      if (!lane->done(position)) return false;
    }
  }
  return true;
}

void EngineState::stop() noexcept {
  std::call_once(stopped_, [this] {
    stopping_.store(true, std::memory_order_seq_cst);
    worker_parking_.notify_all();
    workers.clear();  // joins
    // A client that published while the workers left either sees `closed_` or is seen here.
    closed_.store(true, std::memory_order_seq_cst);
    for (const auto& lane : lanes) answer_without_worker(*lane, Errc::stopped);
  });
}

}  // namespace headrace::serve::detail
