#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// Requests, or queries of requests, by how they ended.
struct Outcomes {
  std::uint64_t answered = 0;
  std::uint64_t invalid = 0;    ///< The client's mistake: a wrong name, shape or size, or a feature the server lacks.
  std::uint64_t refused = 0;    ///< The server had no room, was about to stop, or its engine had failed (429, 503).
  std::uint64_t late = 0;       ///< The deadline passed first, or the request took too long to arrive (408, 504).
  std::uint64_t cancelled = 0;  ///< The client left, or its call ended, before the answer. Counted for models only.
  std::uint64_t failed = 0;     ///< Any other error of the server (500).

  [[nodiscard]] std::uint64_t total() const noexcept {
    return answered + invalid + refused + late + cancelled + failed;
  }
  Outcomes& operator+=(const Outcomes& other) noexcept {
    answered += other.answered;
    invalid += other.invalid;
    refused += other.refused;
    late += other.late;
    cancelled += other.cancelled;
    failed += other.failed;
    return *this;
  }
};

/// Counts durations between fixed bounds: 1, 2 and 5 times each power of ten, from 1 us to 10 s.
struct DurationHistogram {
  static constexpr std::array<Duration, 22> kBounds = [] {
    std::array<Duration, 22> bounds{};
    Duration decade = std::chrono::microseconds(1);
    for (std::size_t i = 0; i < bounds.size(); i += 3, decade *= 10) {
      bounds[i] = decade;
      if (i + 1 < bounds.size()) bounds[i + 1] = 2 * decade;
      if (i + 2 < bounds.size()) bounds[i + 2] = 5 * decade;
    }
    return bounds;
  }();

  /// The element of `counts` for a duration.
  [[nodiscard]] static constexpr std::size_t bucket_of(Duration duration) noexcept {
    const auto nanoseconds = static_cast<std::uint64_t>(duration.count() < 0 ? 0 : duration.count());
    std::size_t bucket = kFirstBuckets[static_cast<std::size_t>(std::bit_width(nanoseconds))];
    while (bucket < kBounds.size() && kBounds[bucket] < duration) ++bucket;
    return bucket;
  }

  /// counts[i] counts the durations that are at most kBounds[i] and above the previous bound; the last element has the
  /// rest.
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  Duration sum{};

  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t count = 0;
    for (const std::uint64_t one : counts) count += one;
    return count;
  }

 private:
  /// By bit width: the bucket of the shortest duration whose nanoseconds have this width.
  static constexpr std::array<std::uint8_t, 65> kFirstBuckets = [] {
    std::array<std::uint8_t, 65> first{};
    for (std::size_t bits = 1; bits < first.size(); ++bits) {
      const std::uint64_t least = std::uint64_t{1} << (bits - 1);
      std::uint8_t bucket = 0;
      while (bucket < kBounds.size() && static_cast<std::uint64_t>(kBounds[bucket].count()) < least) ++bucket;
      first[bits] = bucket;
    }
    return first;
  }();
};

/// Where answered requests spent their time. For each request, `queue`, `engine` and `reply` add up to
/// ProtocolStatistics::durations. Not counted for shared memory, where the server sees only `engine`.
struct StageHistograms {
  DurationHistogram read;    ///< From the request's first byte until it had been read and checked.
  DurationHistogram queue;   ///< From then until the last of its queries went to the engine.
  DurationHistogram engine;  ///< From then until the server had all answers: the operator, and the engine's own queue.
  DurationHistogram reply;   ///< From then until the reply was ready to send.
};

/// The requests for inference that a model received over one protocol.
struct ProtocolStatistics {
  Outcomes requests;
  Outcomes queries;             ///< Queries share the outcome of their request. Invalid requests count none.
  DurationHistogram durations;  ///< Answered requests: from the request being read to its reply being ready to send.
  StageHistograms stages;       ///< The same requests, stage by stage.
  Duration unanswered{};        ///< Sum of the same durations of all other requests, without invalid ones.
};

/// The requests for inference of one priority, over HTTP and gRPC.
struct PriorityStatistics {
  Outcomes requests;                  ///< Without unreadable requests, whose priority is not known.
  std::uint64_t queries_waiting = 0;  ///< Queries that wait for a slot of the engine now.
};

/// Activity of a server's model since the server started.
struct ModelStatistics {
  std::string name;
  std::string version;
  bool loaded = false;  ///< The model has not been unloaded.
  bool ready = false;   ///< The model is loaded, and its engine has not failed.
  ProtocolStatistics http = {};
  ProtocolStatistics grpc = {};
  ProtocolStatistics shm = {};          ///< Through shared memory, where each query is a request.
  PriorityStatistics high = {};         ///< Requests of priority 1.
  PriorityStatistics normal = {};       ///< All other requests.
  std::uint64_t queries_waiting = 0;    ///< Queries that wait for a slot of the engine now, of both priorities.
  std::uint64_t queries_in_flight = 0;  ///< Queries that the engine has now.
  std::int64_t last_inference = 0;      ///< Time of its last answer, in milliseconds since 1970; 0: none yet.
  // What Server::change() may change, in force now; 0 if the model is not loaded.
  double share = 0;                 ///< Plan::share of its engine.
  Duration latency_max{};           ///< Plan::latency_max of its engine; 0: no bound.
  std::uint32_t in_flight_max = 0;  ///< Queries that the engine takes from each thread.
  std::uint32_t waiting_max = 0;    ///< Queries that may wait for slots, for each thread.
};

/// Activity of a server since it started.
struct ServerStatistics {
  std::uint64_t connections = 0;       ///< Accepted.
  std::uint64_t connections_open = 0;  ///< Now.
  /// Connections closed because connections_max or the limit of descriptors was reached: those silent for longest, or
  /// else new ones.
  std::uint64_t connections_refused = 0;
  std::uint64_t requests = 0;      ///< Requests that got a reply of any status; in a gRPC stream, each message counts.
  std::uint64_t failed = 0;        ///< Requests among them that ended with an error.
  std::uint64_t refused = 0;       ///< Requests among them for which there was no room (429, 503; likewise in gRPC).
  Outcomes http = {};              ///< Requests over HTTP, by outcome.
  Outcomes grpc = {};              ///< Requests over gRPC, by outcome.
  Outcomes shm = {};               ///< Requests through shared memory, by outcome.
  std::uint64_t memory_bytes = 0;  ///< Memory that requests and replies take now.
  std::uint64_t memory_limit_bytes = 0;  ///< ServerConfig::memory_max.
  std::uint64_t unauthorized = 0;        ///< Requests without a token that the server accepts (401, UNAUTHENTICATED).
  std::uint64_t handshakes = 0;          ///< Completed TLS handshakes.
  std::uint64_t handshakes_failed = 0;   ///< Failed ones: no or a wrong certificate, no TLS at all, or too slow.
  std::string handshake_failure = {};    ///< Why the last handshake failed; empty if none has.
  std::uint64_t traces_dropped = 0;      ///< Traced requests that were not kept, see ServerConfig::traces_max.
  std::int64_t certificate_ends = 0;     ///< Expiry of the server's certificate, in seconds since 1970; 0 without TLS.
};

}  // namespace headrace::wire
