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

/// How a flight learns that it is over.
enum class Arrival : std::uint8_t {
  event,            ///< By an event of its own, which can be polled.
  event_per_batch,  ///< By an event that is made for each batch.
  word,             ///< By a word that its kernel writes. For plans whose kernels reach host memory.
  stream,           ///< By waiting for its stream, on which there is nothing else.
};

struct FlightOptions {
  Arrival arrival = Arrival::event;
  bool as_graph = false;  ///< Copies and kernel are replayed as one graph.
  /// With Arrival::word: a stream on which launches run side by side, which costs less than a stream each. What is
  /// sampled goes to the flight's own stream.
  std::optional<StreamRef> shared = {};
};

/// How flights that are polled learn that they are over. `runs_itself`: polling an event is what runs the work.
[[nodiscard]] Arrival polled_arrival(const EngineState& engine, bool runs_itself) noexcept;
/// Whether launches of one stream run side by side on the engine's device, so that FlightOptions::shared is of use.
[[nodiscard]] bool launches_overlap(const EngineState& engine) noexcept;

/// A batch of queries on its way through the device, and what it takes: a place, marks, an event, graphs. Made at start
/// and used again and again, by one thread at a time:
///
///   add() ... close(), copy_in(), launch(), copy_out(), landed() until true (or wait()), finish()
///
/// The first failure on the way is remembered, skips what is left of it, and is what finish() answers.
class Flight {
 public:
  /// Throws DeviceError when there is no room for what it takes.
  Flight(EngineState& engine, StreamRef stream, FlightOptions options);
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] bool full() const noexcept { return jobs_.size() == engine_.plan.batch_max; }
  /// Takes a query in; the flight is not full.
  void add(const Job& job) noexcept;
  /// Takes in the queries that are there, as many as it has room for.
  void add_waiting(std::uint32_t worker) noexcept;
  /// The same from one lane.
  void add_waiting(Lane& lane) noexcept;
  /// When the batch closes, however few are in it; it is not empty.
  [[nodiscard]] Time closes_at() const noexcept { return first_held_ + engine_.plan.batch_age; }
  /// Answers those that are cancelled, too late or stopped; false when none is left to be worked on.
  [[nodiscard]] bool close(WorkerCounters& counters) noexcept;

  void copy_in() noexcept;
  void launch() noexcept;
  void copy_out() noexcept;
  /// All three, as one graph where the flight has one.
  void depart() noexcept;

  /// Whether nothing of it is left to be done, well or not. Not for Arrival::stream.
  [[nodiscard]] bool landed() noexcept;
  /// Waits until that is so.
  void wait() noexcept;
  /// Answers every query in it and empties it.
  void finish(WorkerCounters& counters) noexcept;

 private:
  // Points on the way through the stream, whose times are taken of sampled queries.
  static constexpr std::size_t kStart = 0;
  static constexpr std::size_t kCopiedIn = 1;
  static constexpr std::size_t kComputed = 2;
  static constexpr std::size_t kCopiedOut = 3;
  static constexpr std::size_t kMarks = 4;

  /// A graph and where in it the steps are that change.
  struct Replay {
    Graph graph;
    std::size_t copy_in;
    std::size_t launch;
    std::size_t copy_out;
    std::size_t items;  ///< The items that its launch is for.
  };

  [[nodiscard]] Replay make_replay(bool with_marks) const;
  [[nodiscard]] Status replay(Replay& replay) noexcept;
  [[nodiscard]] Status copy(std::span<const Copy> copies) noexcept;
  [[nodiscard]] Status mark(std::size_t which) noexcept;
  /// Does `step` unless something has failed, and remembers whether it did.
  template <class Step>
  void attempt(Step step) noexcept {
    if (status_) status_ = step();
  }
  [[nodiscard]] Status record_arrival() noexcept;
  /// Whether its kernel has said that it is over. Looks now and then whether it still can.
  [[nodiscard]] bool told() noexcept;
  /// The end of the way: what tells that the flight is over. Work that was enqueued before a failure still uses the
  /// place, so this comes after a failure as well.
  void end() noexcept;
  /// Fails what is in it, once nothing of it is left on the stream. The one case in which a flight is waited for.
  void abort(Status failure) noexcept;
  void record_samples(WorkerCounters& counters) noexcept;

  EngineState& engine_;
  StreamRef stream_;
  const Arrival arrival_;
  const std::optional<StreamRef> shared_;
  StreamRef on_;  ///< The stream that the batch in it goes through.
  std::optional<ArrivalWord> word_;
  std::uint32_t looks_ = 0;  ///< At the word, since it last looked at the stream.
  BatchPlace place_;
  std::vector<Job> jobs_;  ///< With room for Plan::batch_max.
  Time first_held_{};
  Time began_{};          ///< Only of a batch with a sampled query.
  bool sampled_ = false;  ///< Whether a query of the batch is.
  bool over_ = false;     ///< It has failed and nothing of it is left on the stream.
  Status status_;
  std::optional<Event> arrived_;
  std::optional<std::array<Event, kMarks>> marks_;
  std::optional<Replay> plain_;
  std::optional<Replay> with_marks_;
};

/// Takes queries into `flight`, which holds one already, until it is full or has been held for Plan::batch_age.
void fill(EngineState& engine, std::uint32_t worker, Flight& flight) noexcept;

}  // namespace headrace::serve::detail
