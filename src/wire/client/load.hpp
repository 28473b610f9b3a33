#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/measure/detail/load.hpp"
#include "wire/client/endpoint.hpp"
#include "wire/client/ring_target.hpp"

/// Generates load on servers of the Open Inference Protocol, Headrace's and others.
namespace headrace::wire::client {

/// Asks a server for the inputs of a model; empty if a stop was requested first. Throws UsageError for a model that the
/// server lacks and for an invalid address, SystemError if the server cannot be reached or does not answer, DataError
/// for an unreadable description.
[[nodiscard]] std::optional<std::vector<ModelInput>> describe(const Endpoint& endpoint, const std::stop_token& stop);

/// How requests are sent to the server.
struct Way {
  std::uint32_t connections = 1;       ///< Connections of all threads together.
  std::uint32_t streams = 1;           ///< Concurrent requests per connection; 1 for HTTP.
  std::optional<Duration> deadline{};  ///< Deadline that the server is told, counted from its receipt of the request.
  std::uint32_t generators = 1;        ///< Threads, among which the connections are divided.
  double high_share = 0;               ///< The share of requests with high priority, drawn by the load's seed.
};

/// Results of the requests of one priority, over the whole run.
struct PriorityLoad {
  std::array<std::uint64_t, measure::kOutcomes> outcomes{};  ///< By measure::Outcome.
  measure::LatencySummary latency;                           ///< Answered requests, from their scheduled arrival.

  [[nodiscard]] std::uint64_t count(measure::Outcome outcome) const noexcept {
    return outcomes[static_cast<std::size_t>(outcome)];
  }
};
struct PriorityLoads {
  PriorityLoad high;
  PriorityLoad normal;
};

struct ServerLoad {
  /// Each arrival is a request. Answers are not checked, so none counts as wrong.
  measure::LoadResult load;
  std::uint64_t connections_lost = 0;
  std::string failure;                        ///< The server's text about the first failed request.
  std::string refusal;                        ///< The server's text about the first refused request.
  std::optional<PriorityLoads> priorities{};  ///< Set if some requests had high priority.
};

/// Puts a load on a model, using the elements of `inputs` in turn. Throws as describe() does, and UsageError for
/// options out of range.
[[nodiscard]] ServerLoad load(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                              const Way& way, const measure::LoadOptions& options);

/// A model behind shared memory, as its server describes it.
struct RingDescription {
  std::string model;
  std::size_t query_bytes = 0;
  std::vector<Tensor> inputs;
};
/// Throws as wire::Client does.
[[nodiscard]] RingDescription describe_ring(const std::string& url);
/// The same load through shared memory, with one client per generator. Throws as wire::Client does, SystemError if the
/// server is away or silent for longer than the endpoint's patience, UsageError for options out of range.
[[nodiscard]] ServerLoad load_rings(const RingEndpoint& endpoint, std::uint32_t generators,
                                    const measure::LoadOptions& options);

}  // namespace headrace::wire::client
