#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "serve/schedules/flight.hpp"

namespace headrace::serve::detail {

/// One thread that drives the flights of Plan::streams_per_thread streams and waits for none of them: it feeds every
/// idle flight, stage by stage, and then looks which have landed. It sleeps only while nothing is in flight.
class Pipeline {
 public:
  /// Throws DeviceError when there is no room for the flights.
  Pipeline(EngineState& engine, std::shared_ptr<const std::vector<Stream>> streams, std::uint32_t index, bool as_graph);

  /// Until the engine stops and every query taken up is answered.
  void run() noexcept;

 private:
  /// Takes queries up and sends them on their way; whether there were any.
  bool feed() noexcept;
  /// The next batch to go, or null when there is none (yet).
  [[nodiscard]] Flight* next_batch() noexcept;
  void depart() noexcept;
  /// Answers what has landed; whether anything had.
  bool collect() noexcept;
  void finish(std::size_t which) noexcept;
  /// Nothing to do: waits for the next query or a little while; false when the engine stops and all is answered.
  [[nodiscard]] bool rest() noexcept;

  EngineState& engine_;
  std::shared_ptr<const std::vector<Stream>> streams_;
  const std::uint32_t index_;
  const bool as_graph_;
  WorkerCounters& counters_;
  std::deque<Flight> flights_;
  std::optional<Stream> shared_;  ///< FlightOptions::shared
  std::vector<Flight*> idle_;
  Flight* filling_ = nullptr;       ///< Not idle any more: the next to depart, with the queries taken up so far.
  std::vector<Flight*> departing_;  ///< Closed, their copies in enqueued.
  std::vector<Flight*> flying_;     ///< In order of departure.
  std::size_t probe_ = 0;
  std::uint32_t fruitless_ = 0;  ///< Rounds since something was done.
};

/// Starts a Pipeline on each thread of the engine.
void start_pipelines(EngineState& engine, bool as_graph);

}  // namespace headrace::serve::detail
