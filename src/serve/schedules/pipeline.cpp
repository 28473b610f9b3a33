#include "serve/schedules/pipeline.hpp"

#include <thread>
#include <utility>

#include "serve/schedules/schedules.hpp"

namespace headrace::serve::detail {

namespace {

/// Whether the engine's threads alone fill the processors of a CPU device. Then work for the device's own threads would
/// wait for the threads that poll for it.
bool runs_itself(const EngineState& engine) {
  if (!engine.device.properties().host_cores) return false;
  const DeviceProperties& properties = engine.device.properties();
  const int processors = properties.multiprocessor_count * properties.threads_per_multiprocessor;
  return engine.plan.threads >= static_cast<std::uint64_t>(processors);
}

}  // namespace

Pipeline::Pipeline(EngineState& engine, std::shared_ptr<const std::vector<Stream>> streams, std::uint32_t index,
                   bool as_graph)
    : engine_(engine),
      streams_(std::move(streams)),
      index_(index),
      as_graph_(as_graph),
      counters_(engine.counters[index]) {
  const std::size_t count = engine.plan.streams_per_thread;
  idle_.reserve(count);
  departing_.reserve(count);
  flying_.reserve(count);
  FlightOptions options{.arrival = polled_arrival(engine, runs_itself(engine)), .as_graph = as_graph};
  if (options.arrival == Arrival::word && !as_graph && launches_overlap(engine)) {
    options.shared = shared_.emplace(engine.device);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Stream& stream = (*streams_)[(index * count + i) % streams_->size()];
    flights_.emplace_back(engine, stream, options);
    idle_.push_back(&flights_.back());
  }
}

void Pipeline::run() noexcept {
  while (true) {
    const bool fed = feed();
    const bool landed = collect();
    fruitless_ = fed || landed ? 0 : fruitless_ + 1;
    if (fruitless_ > 0 && !rest()) return;
  }
}

bool Pipeline::feed() noexcept {
  while (Flight* const batch = next_batch()) {
    if (!batch->close(counters_)) {
      idle_.push_back(batch);  // all its queries have been answered
      continue;
    }
    // Enqueue the copy now, so that it runs while the next batch is gathered.
    if (!as_graph_) batch->copy_in();
    departing_.push_back(batch);
  }
  if (departing_.empty()) return false;
  depart();
  return true;
}

Flight* Pipeline::next_batch() noexcept {
  if (filling_ == nullptr) {
    if (idle_.empty()) return nullptr;
    filling_ = idle_.back();
    idle_.pop_back();
  }
  filling_->add_waiting(index_);
  if (filling_->empty()) return nullptr;
  const bool holds = !filling_->full() && engine_.plan.batch_age > Duration::zero();
  if (holds && !engine_.stopping() && SteadyClock::now() < filling_->closes_at()) return nullptr;
  return std::exchange(filling_, nullptr);
}

void Pipeline::depart() noexcept {
  if (as_graph_) {
    for (Flight* const flight : departing_) flight->depart();
  } else {
    for (Flight* const flight : departing_) flight->launch();
    for (Flight* const flight : departing_) flight->copy_out();
  }
  flying_.insert(flying_.end(), departing_.begin(), departing_.end());
  departing_.clear();
}

bool Pipeline::collect() noexcept {
  bool any = false;
  while (!flying_.empty() && flying_.front()->landed()) {
    finish(0);
    any = true;
  }
  if (flying_.size() < 2) return any;
  // Also check one of the others, in turn, so that a slow batch does not delay those after it.
  probe_ = probe_ % (flying_.size() - 1) + 1;
  if (!flying_[probe_]->landed()) return any;
  finish(probe_);
  return true;
}

void Pipeline::finish(std::size_t which) noexcept {
  Flight* const flight = flying_[which];
  flight->finish(counters_);
  flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  idle_.push_back(flight);
}

bool Pipeline::rest() noexcept {
  constexpr std::uint32_t kRoundsAwake = 64;
  if (!flying_.empty()) {
    if (fruitless_ > kRoundsAwake) std::this_thread::yield();  // a CPU device may need this processor
    return true;
  }
  // With nothing in flight, there is always a flight to fill.
  const bool holds = !filling_->empty();
  const auto job = engine_.next_job(index_, holds ? filling_->closes_at() : Time::max());
  if (job) filling_->add(*job);
  return job.has_value() || holds;
}

void start_pipelines(EngineState& engine, bool as_graph) {
  const auto streams = make_streams(engine, engine.plan.streams_per_thread, {.run_in_waiter = runs_itself(engine)});
  std::vector<std::shared_ptr<Pipeline>> pipelines;
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    pipelines.push_back(std::make_shared<Pipeline>(engine, streams, i, as_graph));
  }
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    start_worker(engine, i, [pipeline = pipelines[i]] { pipeline->run(); });
  }
}

}  // namespace headrace::serve::detail
