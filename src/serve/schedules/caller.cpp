#include <memory>
#include <utility>

#include "serve/schedules/flight.hpp"
#include "serve/schedules/schedules.hpp"

/// The caller schedule: a client's thread takes a batch of its own queries, launches, and waits for the answers.
namespace headrace::serve::detail {

namespace {

class CallerRunner final : public LaneRunner {
 public:
  CallerRunner(EngineState& engine, Lane& lane, WorkerCounters& counters)
      : lane_(lane),
        stream_(engine.device, {.run_in_waiter = true}),
        flight_(engine, stream_, {.arrival = Arrival::stream}),
        counters_(counters) {}

  bool run() noexcept override {
    flight_.add_waiting(lane_);
    if (flight_.empty()) return false;
    if (!flight_.close(counters_)) return true;
    flight_.depart();
    flight_.wait();
    flight_.finish(counters_);
    return true;
  }

 private:
  Lane& lane_;
  Stream stream_;
  Flight flight_;
  WorkerCounters& counters_;
};

}  // namespace

void start_caller(EngineState& engine) {
  for (std::size_t i = 0; i < engine.lanes.size(); ++i) {
    Lane& lane = *engine.lanes[i];
    lane.runner = std::make_unique<CallerRunner>(engine, lane, engine.counters[i]);
  }
}

}  // namespace headrace::serve::detail
