#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "serve/schedules/flight.hpp"
#include "serve/schedules/handoff.hpp"
#include "serve/schedules/schedules.hpp"

/// The async schedule: one thread submits, and a second thread watches all flights, as an epoll loop watches sockets,
/// and answers them in the order in which they land (Guo 2024, Async Scheduling). No thread waits for a single query.
namespace headrace::serve::detail {

namespace {

class AsyncWorker {
 public:
  AsyncWorker(EngineState& engine, std::shared_ptr<const std::vector<Stream>> streams, std::uint32_t index)
      : engine_(engine),
        streams_(std::move(streams)),
        index_(index),
        in_flight_(engine.plan.streams_per_thread),
        free_(engine.plan.streams_per_thread) {
    const std::size_t count = engine.plan.streams_per_thread;
    flying_.reserve(count);
    FlightOptions options{.arrival = polled_arrival(engine, false)};
    if (options.arrival == Arrival::word && launches_overlap(engine)) options.shared = shared_.emplace(engine.device);
    for (std::size_t i = 0; i < count; ++i) {
      const Stream& stream = (*streams_)[(index * count + i) % streams_->size()];
      flights_.emplace_back(engine, stream, options);
      free_.push(&flights_.back());
    }
  }

  void submit() noexcept {
    WorkerCounters& counters = engine_.counters[index_];
    // Get a flight first, so that other threads may take the queries while this one has no flight. A flight always
    // comes free eventually, because no thread closes free_.
    Flight* flight = next_free();
    while (const auto job = engine_.next_job(index_)) {
      flight->add(*job);
      fill(engine_, index_, *flight);
      if (!flight->close(counters)) continue;
      flight->depart();
      in_flight_.push(flight);
      flight = next_free();
    }
    in_flight_.close();
  }

  void complete() noexcept {
    Time idle_since = SteadyClock::now();
    while (take_up()) {
      if (collect()) {
        idle_since = SteadyClock::now();
      } else {
        doze(idle_since);
      }
    }
  }

 private:
  [[nodiscard]] Flight* next_free() noexcept { return free_.pop(engine_.plan.spin).value_or(nullptr); }

  /// Takes over submitted flights, and sleeps while nothing is in flight. False if there will be no more.
  [[nodiscard]] bool take_up() noexcept {
    while (const auto flight = in_flight_.try_pop()) flying_.push_back(*flight);
    if (!flying_.empty()) return true;
    const auto flight = in_flight_.pop(engine_.plan.spin);
    if (flight) flying_.push_back(*flight);
    return flight.has_value();
  }

  /// Answers flights that have landed, and returns whether there were any.
  bool collect() noexcept {
    WorkerCounters& counters = engine_.counters[engine_.plan.threads + index_];
    return std::erase_if(flying_, [&](Flight* flight) {
             if (!flight->landed()) return false;
             flight->finish(counters);
             free_.push(flight);
             return true;
           }) > 0;
  }

  /// Polls only now and then after plan.spin without an answer, because a thread cannot sleep on many events of a
  /// device.
  void doze(Time idle_since) noexcept {
    constexpr Duration kDoze = std::chrono::microseconds(50);
    const Time now = SteadyClock::now();
    if (now - idle_since < engine_.plan.spin) {
      std::this_thread::yield();
    } else {
      in_flight_.wait_until(now + kDoze);
    }
  }

  EngineState& engine_;
  std::shared_ptr<const std::vector<Stream>> streams_;
  const std::uint32_t index_;
  std::deque<Flight> flights_;
  std::optional<Stream> shared_;  ///< FlightOptions::shared
  Handoff<Flight*> in_flight_;    ///< From the submitting thread to the completing one.
  Handoff<Flight*> free_;         ///< From the completing thread back to the submitting one.
  std::vector<Flight*> flying_;
};

}  // namespace

void start_async(EngineState& engine) {
  const auto streams = make_streams(engine, engine.plan.streams_per_thread, {});
  std::vector<std::shared_ptr<AsyncWorker>> workers;
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    workers.push_back(std::make_shared<AsyncWorker>(engine, streams, i));
  }
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    // Neighbouring processors if threads are bound. Start the submitting thread first, because it tells the other one
    // to end.
    start_worker(engine, 2 * i, [worker = workers[i]] { worker->submit(); });
    start_worker(engine, 2 * i + 1, [worker = workers[i]] { worker->complete(); });
  }
}

}  // namespace headrace::serve::detail
