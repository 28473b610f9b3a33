#include "headrace/serve/engine.hpp"

#include "serve/engine_state.hpp"
#include "serve/schedules/schedules.hpp"

namespace headrace::serve {

Engine::Engine(Device device, Operator op, Plan plan)
    : state_(std::make_shared<detail::EngineState>(device, std::move(op), std::move(plan))) {
  switch (state_->plan.schedule) {
    case Schedule::blocking: detail::start_blocking(*state_); break;
    case Schedule::none: break;
  }
}

Engine::~Engine() {
  if (state_) stop();
}

Client Engine::connect() { return Client(state_, state_->take_lane()); }

bool Engine::drain(Duration limit) {
  const Time began = SteadyClock::now();
  while (!state_->all_answered()) {
    if (SteadyClock::now() - began >= limit) return false;
    std::this_thread::yield();
  }
  return true;
}

void Engine::stop() noexcept { state_->stop(); }

EngineStatistics Engine::statistics() const {
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
  }
  std::uint64_t notified = 0;
  for (const auto& lane : state_->lanes) {
    total.submitted += lane->ring.published();
    total.refused += lane->refused.load(std::memory_order_relaxed);
    notified += lane->notify_samples.load(std::memory_order_relaxed);
    stages.notify += Duration{lane->notify_ns.load(std::memory_order_relaxed)};
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

std::optional<Error> Engine::fault() const noexcept {
  if (!state_->faulted_.load(std::memory_order_acquire)) return std::nullopt;
  return Error{Errc::device_fault, state_->fault_native_.load(std::memory_order_relaxed)};
}

const Plan& Engine::plan() const noexcept { return state_->plan; }
const Operator& Engine::op() const noexcept { return state_->op; }
Device Engine::device() const noexcept { return state_->device; }

}  // namespace headrace::serve
