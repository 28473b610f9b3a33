#include "serve/engine_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::serve::detail {

namespace {

Plan validated(Plan plan, Device device, const Operator& op) {
  validate(plan, device, op);
  return plan;
}

/// One per worker; two per submitting thread, which has a completing one; one per client if there are no workers.
std::size_t counters_needed(const Plan& plan) {
  if (is_threadless(plan.schedule)) return plan.clients_max;
  return plan.schedule == Schedule::async ? std::size_t{2} * plan.threads : plan.threads;
}

}  // namespace

EngineState::EngineState(Device device_in, Operator op_in, Plan plan_in)
    : device(device_in),
      op(std::move(op_in)),
      plan(validated(std::move(plan_in), device, op)),
      counters(counters_needed(plan)) {
  loaded = op.load(device);
  if (is_direct(plan.schedule)) {
    direct_memory = std::make_shared<const DirectMemory>(device, plan, op);
    const DispatchView& view = direct_memory->view();
    for (std::uint32_t i = 0; i < plan.clients_max; ++i) {
      DirectLane::Memory memory = direct_memory->lane(i);
      memory.failed = loaded.failed;
      direct_lanes.push_back(std::make_unique<DirectLane>(memory, plan.slots, view.query_bytes, view.answer_bytes,
                                                          view.sample_every, &counters[i]));
      free_lanes_.push_back({.direct = direct_lanes.back().get()});
    }
    return;
  }
  turns_.resize(counters.size());
  // Workers start at different lanes, so that they rarely contend.
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i].lane = i % plan.clients_max;
  for (std::uint32_t i = 0; i < plan.clients_max; ++i) {
    lanes.push_back(std::make_unique<Lane>(device, plan.host_memory, op.query_bytes, op.answer_bytes, plan.slots));
    free_lanes_.push_back({.queued = lanes.back().get()});
  }
}

EngineState::~EngineState() { stop(); }

LaneRef EngineState::take_lane() {
  const std::lock_guard lock(lanes_mutex_);
  if (free_lanes_.empty()) {
    throw UsageError(fmt::format("all {} lanes of the engine are taken; raise Plan::clients_max", plan.clients_max),
                     Errc::full);
  }
  const LaneRef lane = free_lanes_.back();
  free_lanes_.pop_back();
  return lane;
}

void EngineState::give_lane(LaneRef lane) noexcept {
  const std::lock_guard lock(lanes_mutex_);
  free_lanes_.push_back(lane);  // within capacity, because the lane came from here
}

void EngineState::published(Lane& lane) noexcept {
  if (closed_.load(std::memory_order_seq_cst)) {
    answer_without_worker(lane, Errc::stopped);
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

std::optional<Job> EngineState::try_job(std::uint32_t worker) noexcept {
  Turn& turn = turns_[worker];
  std::size_t at = turn.lane;
  for (std::size_t i = 0; i < lanes.size(); ++i, at = after(at)) {
    const auto position = lanes[at]->ring.try_claim();
    if (!position) continue;
    if (at != turn.lane) turn = {.lane = at};
    if (++turn.taken == kTurn) turn = {.lane = after(at)};
    return Job{lanes[at].get(), *position};
  }
  return std::nullopt;
}

void EngineState::try_jobs(std::uint32_t worker, std::size_t most, std::vector<Job>& jobs) noexcept {
  Turn& turn = turns_[worker];
  std::size_t at = turn.lane;
  bool is_first = true;
  for (std::size_t i = 0; i < lanes.size() && jobs.size() < most; ++i, at = after(at)) {
    const Ring::Claim claim = lanes[at]->ring.try_claim_many(most - jobs.size());
    for (std::uint64_t k = 0; k < claim.count; ++k) jobs.push_back({lanes[at].get(), claim.first + k});
    if (claim.count > 0 && std::exchange(is_first, false)) turn = {.lane = after(at)};
  }
}

std::optional<Job> EngineState::next_job(std::uint32_t worker, Time until) noexcept {
  std::optional<Job> job = try_job(worker);
  if (job) return job;
  const Time began = SteadyClock::now();
  while (!stopping()) {
    const Time now = SteadyClock::now();
    if (now - began < plan.spin) {
      job = try_job(worker);
    } else {
      worker_parking_.wait_until(until, [&] {
        job = try_job(worker);
        return job || stopping();
      });
    }
    if (job || now >= until) return job;
  }
  return try_job(worker);
}

Status EngineState::admissible(const Job& job) const noexcept {
  if (const auto error = fault()) return *error;
  if (stopping()) return Errc::stopped;
  const SlotControl& slot = job.lane->control(job.position);
  if (slot.cancelled.load(std::memory_order_acquire) == job.position + 1) return Errc::cancelled;
  if (slot.deadline != Time::max() && SteadyClock::now() > slot.deadline) return Errc::deadline_exceeded;
  return {};
}

void EngineState::complete(const Job& job, Status status, WorkerCounters& worker) noexcept {
  SlotControl& slot = job.lane->control(job.position);
  if (status && loaded.has_failed()) [[unlikely]]
    status = Errc::device_fault;
  if (status && slot.deadline != Time::max() && SteadyClock::now() > slot.deadline) status = Errc::deadline_exceeded;
  if (status) {
    add_single_writer(worker.answered, std::uint64_t{1});
  } else {
    const Error error = status.error();
    auto& counter = error.code == Errc::cancelled           ? worker.cancelled
                    : error.code == Errc::deadline_exceeded ? worker.expired
                                                            : worker.failed;
    add_single_writer(counter, std::uint64_t{1});
    if (error.code == Errc::device_fault) fail(error);
  }
  if (sampled(job.position)) slot.finished = SteadyClock::now();
  job.lane->complete(job.position, status);
}

void EngineState::fail(Error error) noexcept {
  if (!fault_.set(error)) return;
  for (const auto& lane : direct_lanes) lane->close(error);
}

std::optional<Error> EngineState::fault() const noexcept {
  if (auto error = fault_.get()) return error;
  if (loaded.has_failed()) return Error{Errc::device_fault, 0};
  return std::nullopt;
}

bool EngineState::all_answered() const noexcept {
  for (const auto& lane : direct_lanes) {
    if (!lane->all_answered()) return false;
  }
  for (const auto& lane : lanes) {
    const std::uint64_t published = lane->ring.published();
    const std::uint64_t oldest = published > plan.slots ? published - plan.slots : 0;
    for (std::uint64_t position = std::max(oldest, lane->ring.released()); position < published; ++position) {
      if (!lane->done(position)) return false;
    }
  }
  return true;
}

Plan EngineState::plan_now() const {
  Plan now = plan;
  now.share = share_.load(std::memory_order_relaxed);
  limits.put_into(now);
  return now;
}

void EngineState::change(const PlanChange& change) {
  const std::lock_guard one_at_a_time(changing_);
  const Plan before = plan_now();
  const Plan wanted = validated(change.of(before), device, op);
  if (stopping()) throw_error("changing the plan of an engine", Error{Errc::stopped, 0});
  if (wanted.share != before.share) watchdog->set_share(wanted.share);
  share_.store(wanted.share, std::memory_order_relaxed);
  limits.set(wanted);
}

void EngineState::stop() noexcept {
  if (birth.inherited()) return;  // the parent's threads continue
  std::call_once(stopped_, [this] {
    stopping_.store(true, std::memory_order_seq_cst);
    worker_parking_.notify_all();
    workers.clear();  // joins
    // Without an owner, the kernel keeps only its own resources: the engine's constructor threw, so no query can hang.
    if (watchdog && !watchdog->stop()) watchdog->kernel().abandon(weak_from_this().lock());
    for (const auto& lane : direct_lanes) lane->close(fault().value_or(Error{Errc::stopped, 0}));
    // A client that published while the workers exited either sees `closed_`, or its query is seen here.
    closed_.store(true, std::memory_order_seq_cst);
    for (const auto& lane : lanes) answer_without_worker(*lane, Errc::stopped);
    caller_streams.close();
  });
}

}  // namespace headrace::serve::detail
