#include "headrace/serve/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "serve/engine_state.hpp"
#include "serve/schedules/schedules.hpp"

namespace headrace::serve {

namespace {

std::shared_ptr<detail::EngineState> start(Device device, Operator op, Plan plan) {
  op = linked(std::move(op), device, detail::kernels_of(plan));
  std::shared_ptr<detail::EngineState> state(
      make_process_owned<detail::EngineState>(device, std::move(op), std::move(plan)));
  switch (state->plan.schedule) {
    case Schedule::blocking: detail::start_blocking(*state); break;
    case Schedule::pipelined: detail::start_pipelined(*state); break;
    case Schedule::async: detail::start_async(*state); break;
    case Schedule::graph: detail::start_graph(*state); break;
    case Schedule::persistent: detail::start_persistent(*state); break;
    case Schedule::dispatched: detail::start_dispatched(*state); break;
    case Schedule::caller: detail::start_caller(*state); break;
    case Schedule::none: break;
  }
  return state;
}

}  // namespace

Engine::Engine(Device device, Operator op, Plan plan) {
  static_cast<void>(abandoned_count());  // frees the room of those that have ended, which may be needed
  try {
    state_ = start(device, std::move(op), std::move(plan));
  } catch (const DeviceError& error) {
    if (error.code() != Errc::device_fault) throw;
    throw DeviceError(error.code(),
                      fmt::format("{} failed in this process and cannot be used again (CUDA keeps a fault until the "
                                  "process ends); start a new process; the failure was: {}",
                                  device.name(), error.what()),
                      error.native());
  }
}

Engine::~Engine() {
  if (state_) stop();
}

Client Engine::connect() {
  state_->birth.require("connecting to an engine");
  if (state_->stopping()) throw_error("connecting to an engine", Error{Errc::stopped, 0});
  return Client(state_, state_->take_lane());
}

bool Engine::drain(Duration limit) {
  state_->birth.require("draining an engine");
  const Time began = SteadyClock::now();
  while (!state_->all_answered()) {
    if (SteadyClock::now() - began >= limit) return false;
    std::this_thread::yield();
  }
  return true;
}

void Engine::change(const PlanChange& change) {
  state_->birth.require("changing the plan of an engine");
  state_->change(change);
}

void Engine::stop() noexcept { state_->stop(); }

bool Engine::stopped() const noexcept { return state_->stopping(); }

EngineStatistics Engine::statistics() const {
  state_->birth.require("reading the statistics of an engine");
  EngineStatistics total;
  std::uint64_t samples = 0;
  StageTimes& stages = total.stages;
  for (const auto& worker : state_->counters) {
    total.answered += worker.answered.load(std::memory_order_relaxed);
    total.failed += worker.failed.load(std::memory_order_relaxed);
    total.cancelled += worker.cancelled.load(std::memory_order_relaxed);
    total.expired += worker.expired.load(std::memory_order_relaxed);
    samples += worker.samples.load(std::memory_order_relaxed);
    stages.queue += Duration{worker.queue_ns.load(std::memory_order_relaxed)};
    stages.copy_in += Duration{worker.copy_in_ns.load(std::memory_order_relaxed)};
    stages.kernel += Duration{worker.kernel_ns.load(std::memory_order_relaxed)};
    stages.copy_out += Duration{worker.copy_out_ns.load(std::memory_order_relaxed)};
    stages.host += Duration{worker.host_ns.load(std::memory_order_relaxed)};
    worker.recent.read(total.recent);
  }
  std::ranges::sort(total.recent, {}, &StageSample::submitted);
  std::uint64_t notified = 0;
  for (const auto& lane : state_->lanes) {
    total.submitted += lane->ring.published();
    total.refused += lane->refused.load(std::memory_order_relaxed);
    notified += lane->notify_samples.load(std::memory_order_relaxed);
    stages.notify += Duration{lane->notify_ns.load(std::memory_order_relaxed)};
  }
  for (const auto& lane : state_->direct_lanes) {
    const detail::DirectLane::Counters& counters = lane->counters();
    const auto unanswered = [&](const std::atomic<std::uint64_t>& counter) {
      const std::uint64_t count = counter.load(std::memory_order_relaxed);
      total.answered -= count;
      return count;
    };
    total.submitted += lane->submitted();
    total.answered += counters.taken.load(std::memory_order_relaxed);
    total.failed += unanswered(counters.failed);
    total.cancelled += unanswered(counters.cancelled);
    total.expired += unanswered(counters.expired);
    total.refused += counters.refused.load(std::memory_order_relaxed);
  }
  stages.samples = samples;
  if (samples > 0) {
    const auto count = static_cast<std::int64_t>(samples);
    for (Duration* stage : {&stages.queue, &stages.copy_in, &stages.kernel, &stages.copy_out, &stages.host})
      *stage /= count;
  }
  if (notified > 0) stages.notify /= static_cast<std::int64_t>(notified);
  return total;
}

std::optional<Error> Engine::fault() const noexcept { return state_->fault(); }

std::size_t Engine::abandoned_count() noexcept { return ResidentKernel::abandoned_count(); }

Plan Engine::plan() const { return state_->plan_now(); }
const Operator& Engine::op() const noexcept { return state_->op; }
Device Engine::device() const noexcept { return state_->device; }

}  // namespace headrace::serve
