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

/// Loads on servers of the Open Inference Protocol, Headrace's and others.
namespace headrace::wire::client {

/// Asks a server for the inputs of a model; nothing where a stop was asked for first. Throws UsageError for a model
/// that it does not have and for an address that is none, SystemError where it cannot be reached or does not answer,
/// DataError for a description that cannot be read.
[[nodiscard]] std::optional<std::vector<ModelInput>> describe(const Endpoint& endpoint, const std::stop_token& stop);

/// How requests go to the server.
struct Way {
  std::uint32_t connections = 1;       ///< All threads have so many together.
  std::uint32_t streams = 1;           ///< Requests on a connection at the same time; HTTP has one.
  std::optional<Duration> deadline{};  ///< That the server is told, counted from when it has the request.
  std::uint32_t generators = 1;        ///< Threads; each has its share of the connections.
  double high_share = 0;               ///< The share of requests with high priority, drawn by the load's seed.
};

/// What became of the requests of one priority, over the whole run.
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
  /// Each arrival is a request. Answers are not compared with anything: none is wrong.
  measure::LoadResult load;
  std::uint64_t connections_lost = 0;
  std::string failure;                        ///< What the server said of the first request that failed, ...
  std::string refusal;                        ///< ... and of the first that it refused.
  std::optional<PriorityLoads> priorities{};  ///< Where some requests had high priority.
};

/// Puts a load on a model, with `inputs` in turn. Throws as describe() does, and UsageError for options out of range.
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
/// The same load through shared memory, a client for each of `generators`. Throws as wire::Client does, SystemError
/// where the server goes away or is silent for longer than the endpoint's patience, UsageError for options out of
/// range.
[[nodiscard]] ServerLoad load_rings(const RingEndpoint& endpoint, std::uint32_t generators,
                                    const measure::LoadOptions& options);

}  // namespace headrace::wire::client
