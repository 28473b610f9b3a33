#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "headrace/device/graph.hpp"
#include "serve/engine_state.hpp"
#include "serve/schedules/arrival_word.hpp"
#include "serve/schedules/batch_place.hpp"

namespace headrace::serve::detail {

/// How a flight detects its end.
enum class Arrival : std::uint8_t {
  event,            ///< By its own event, which can be polled.
  event_per_batch,  ///< By an event that is made for each batch.
  word,             ///< By a word that its kernel writes. For plans whose kernels reach host memory.
  stream,           ///< By waiting for its stream, which has no other work.
};

struct FlightOptions {
  Arrival arrival = Arrival::event;
  bool as_graph = false;  ///< Replays copies and kernel as one graph.
  /// With Arrival::word: a stream on which launches of several flights overlap, which costs less than one stream each.
  /// Sampled batches use the flight's own stream.
  std::optional<StreamRef> shared = {};
};

/// How polled flights detect their end. `runs_itself`: polling an event runs the work.
[[nodiscard]] Arrival polled_arrival(const EngineState& engine, bool runs_itself) noexcept;
/// Whether launches of one stream overlap on the engine's device, so that FlightOptions::shared is useful.
[[nodiscard]] bool launches_overlap(const EngineState& engine) noexcept;

/// A batch of queries in flight through the device, and its resources: a place, marks, an event, graphs. Made at start
/// and reused, by one thread at a time:
///
///   add() ... close(), copy_in(), launch(), copy_out(), landed() until true (or wait()), finish()
///
/// The first failure skips the remaining steps, and finish() answers with it.
class Flight {
 public:
  /// Throws DeviceError if there is no room for its resources.
  Flight(EngineState& engine, StreamRef stream, FlightOptions options);
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] bool full() const noexcept { return jobs_.size() == engine_.plan.batch_max; }
  /// Adds a query to the flight, which must not be full.
  void add(const Job& job) noexcept;
  /// Adds waiting queries, as many as it has room for.
  void add_waiting(std::uint32_t worker) noexcept;
  /// Adds waiting queries of one lane.
  void add_waiting(Lane& lane) noexcept;
  /// When the batch closes even if it is not full. The batch must not be empty.
  [[nodiscard]] Time closes_at() const noexcept { return first_held_ + engine_.plan.batch_age; }
  /// Answers queries that are cancelled, too late or stopped. False if no query is left.
  [[nodiscard]] bool close(WorkerCounters& counters) noexcept;

  void copy_in() noexcept;
  void launch() noexcept;
  void copy_out() noexcept;
  /// All three steps, as one graph if the flight has one.
  void depart() noexcept;

  /// Whether the flight is over, successfully or not. Not for Arrival::stream.
  [[nodiscard]] bool landed() noexcept;
  /// Waits until the flight is over.
  void wait() noexcept;
  /// Answers every query in it and empties it.
  void finish(WorkerCounters& counters) noexcept;

 private:
  // Points in the stream whose times are taken for sampled queries.
  static constexpr std::size_t kStart = 0;
  static constexpr std::size_t kCopiedIn = 1;
  static constexpr std::size_t kComputed = 2;
  static constexpr std::size_t kCopiedOut = 3;
  static constexpr std::size_t kMarks = 4;

  /// A graph and the indices of its changing steps.
  struct Replay {
    Graph graph;
    std::size_t copy_in;
    std::size_t launch;
    std::size_t copy_out;
    std::size_t items;  ///< Items of its launch.
  };

  [[nodiscard]] Replay make_replay(bool with_marks) const;
  [[nodiscard]] Status replay(Replay& replay) noexcept;
  [[nodiscard]] Status copy(std::span<const Copy> copies) noexcept;
  [[nodiscard]] Status mark(std::size_t which) noexcept;
  /// Runs `step` unless an earlier one has failed, and keeps its status.
  template <class Step>
  void attempt(Step step) noexcept {
    if (status_) status_ = step();
  }
  [[nodiscard]] Status record_arrival() noexcept;
  /// Whether its kernel has signalled its end. Also checks now and then that it still can.
  [[nodiscard]] bool told() noexcept;
  /// Enqueues what signals the end of the flight. It runs after a failure as well, because work enqueued before the
  /// failure still uses the place.
  void end() noexcept;
  /// Fails the queries of the flight once none of its work is left on the stream. Only here does a flight wait.
  void abort(Status failure) noexcept;
  void record_samples(WorkerCounters& counters) noexcept;

  EngineState& engine_;
  StreamRef stream_;
  const Arrival arrival_;
  const std::optional<StreamRef> shared_;
  StreamRef on_;  ///< The stream of the current batch.
  std::optional<ArrivalWord> word_;
  std::uint32_t looks_ = 0;  ///< Polls of the word since the last check of the stream.
  BatchPlace place_;
  std::vector<Job> jobs_;  ///< With room for Plan::batch_max.
  Time first_held_{};
  Time began_{};          ///< Only for a batch with a sampled query.
  bool sampled_ = false;  ///< Whether a query of the batch is sampled.
  bool over_ = false;     ///< The flight has failed and none of its work is left on the stream.
  Status status_;
  std::optional<Event> arrived_;
  std::optional<std::array<Event, kMarks>> marks_;
  std::optional<Replay> plain_;
  std::optional<Replay> with_marks_;
};

/// Adds queries to `flight`, which already holds one, until it is full or Plan::batch_age has passed.
void fill(EngineState& engine, std::uint32_t worker, Flight& flight) noexcept;

}  // namespace headrace::serve::detail
