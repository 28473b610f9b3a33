#include <memory>
#include <vector>

#include "serve/schedules/flight.hpp"
#include "serve/schedules/schedules.hpp"

/// The blocking schedule: a thread takes a batch, copies it in, launches, copies the answers out and waits.
namespace headrace::serve::detail {

namespace {

/// If a thread has its own stream, waiting for the stream saves the event. On a shared stream, work of other threads
/// may follow.
Arrival arrival(const Plan& plan) noexcept {
  if (plan.streams == Streams::per_thread) return Arrival::stream;
  return plan.allocator == Allocator::pool ? Arrival::event : Arrival::event_per_batch;
}

class BlockingWorker {
 public:
  BlockingWorker(EngineState& engine, std::shared_ptr<const std::vector<Stream>> streams, std::uint32_t index)
      : engine_(engine),
        streams_(std::move(streams)),
        flight_(engine, (*streams_)[index % streams_->size()], {.arrival = arrival(engine.plan)}),
        counters_(engine.counters[index]),
        index_(index) {}

  void run() noexcept {
    while (const auto job = engine_.next_job(index_)) {
      flight_.add(*job);
      fill(engine_, index_, flight_);
      if (!flight_.close(counters_)) continue;
      flight_.depart();
      flight_.wait();
      flight_.finish(counters_);
    }
  }

 private:
  EngineState& engine_;
  std::shared_ptr<const std::vector<Stream>> streams_;
  Flight flight_;
  WorkerCounters& counters_;
  std::uint32_t index_;
};

}  // namespace

void start_blocking(EngineState& engine) {
  const auto streams = make_streams(engine, 1, {.run_in_waiter = true});
  std::vector<std::shared_ptr<BlockingWorker>> workers;
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    workers.push_back(std::make_shared<BlockingWorker>(engine, streams, i));
  }
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    start_worker(engine, i, [worker = workers[i]] { worker->run(); });
  }
}

}  // namespace headrace::serve::detail
