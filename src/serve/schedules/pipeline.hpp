#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "serve/schedules/flight.hpp"

namespace headrace::serve::detail {

/// One thread that drives the flights of Plan::streams_per_thread streams and waits for none of them: it feeds every
/// idle flight, stage by stage, and then checks which have landed. It sleeps only while nothing is in flight.
class Pipeline {
 public:
  /// Throws DeviceError if there is no room for the flights.
  Pipeline(EngineState& engine, std::shared_ptr<const std::vector<Stream>> streams, std::uint32_t index, bool as_graph);

  /// Runs until the engine stops and every query taken is answered.
  void run() noexcept;

 private:
  /// Takes queries and sends them off. Returns whether there were any.
  bool feed() noexcept;
  /// The next batch to send, or null if there is none (yet).
  [[nodiscard]] Flight* next_batch() noexcept;
  void depart() noexcept;
  /// Answers flights that have landed, and returns whether there were any.
  bool collect() noexcept;
  void finish(std::size_t which) noexcept;
  /// Called without work: waits for the next query or a short time. False if the engine stops and all queries are
  /// answered.
  [[nodiscard]] bool rest() noexcept;

  EngineState& engine_;
  std::shared_ptr<const std::vector<Stream>> streams_;
  const std::uint32_t index_;
  const bool as_graph_;
  WorkerCounters& counters_;
  std::deque<Flight> flights_;
  std::optional<Stream> shared_;  ///< FlightOptions::shared
  std::vector<Flight*> idle_;
  Flight* filling_ = nullptr;       ///< The next flight to depart, with the queries taken so far. It is not in idle_.
  std::vector<Flight*> departing_;  ///< Closed flights whose copies to the device are enqueued.
  std::vector<Flight*> flying_;     ///< Flights in order of departure.
  std::size_t probe_ = 0;
  std::uint32_t fruitless_ = 0;  ///< Consecutive rounds without progress.
};

/// Starts a Pipeline on each thread of the engine.
void start_pipelines(EngineState& engine, bool as_graph);

}  // namespace headrace::serve::detail
