#include "wire/client/load.hpp"

#include <fmt/format.h>

#include <cmath>

#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/measure/detail/generator.hpp"
#include "wire/client/protocols.hpp"
#include "wire/client/target.hpp"

namespace headrace::wire::client {

namespace {

constexpr Duration kLook = std::chrono::milliseconds(2);  // how often it checks for a stop

bool is_grpc(const Endpoint& endpoint) {
  if constexpr (kBuiltWithGrpc) return endpoint.protocol == Protocol::grpc;
  if (endpoint.protocol == Protocol::grpc) {
    throw UsageError(
        "this build does not speak gRPC: install nghttp2 (Debian: libnghttp2-dev) and build Headrace again",
        Errc::not_supported);
  }
  return false;
}

PriorityLoads sum_of_priorities(std::vector<Target>& targets) {
  PriorityLoads loads;
  for (const bool is_high : {true, false}) {
    PriorityLoad& load = is_high ? loads.high : loads.normal;
    measure::Latencies latencies;
    for (Target& target : targets) {
      const PriorityRecord& record = target.shared().priorities->record(is_high);
      for (std::size_t i = 0; i < record.outcomes.size(); ++i) load.outcomes[i] += record.outcomes[i];
      latencies.append(record.latencies);
    }
    load.latency = latencies.summary();
  }
  return loads;
}

void check_way(const Endpoint& endpoint, const Way& way) {
  if (way.generators < 1) throw UsageError("a load needs at least 1 generator");
  if (way.connections < way.generators) {
    throw UsageError(fmt::format("{} connections are too few for {} generators, each of which needs one",
                                 way.connections, way.generators));
  }
  if (std::isnan(way.high_share) || way.high_share < 0 || way.high_share > 1) {
    throw UsageError(fmt::format("the share of requests with high priority must be 0 to 1, not {:g}", way.high_share));
  }
  if (way.streams < 1 || (way.streams > 1 && !is_grpc(endpoint))) {
    throw UsageError(fmt::format(
        "{} concurrent requests per connection are not possible: gRPC allows 1 or more, HTTP only 1", way.streams));
  }
}

}  // namespace

Requests metadata_request(const Endpoint& endpoint) {
  if constexpr (kBuiltWithGrpc) {
    if (is_grpc(endpoint)) return grpc_metadata_request(endpoint);
  }
  return http_metadata_request(endpoint);
}

Requests infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                        const RequestOptions& options) {
  if (inputs.empty()) throw UsageError("a load needs at least one request");
  if constexpr (kBuiltWithGrpc) {
    if (is_grpc(endpoint)) return grpc_infer_requests(endpoint, inputs, options);
  }
  return http_infer_requests(endpoint, inputs, options);
}

std::vector<ModelInput> read_metadata(const Endpoint& endpoint, const std::string& reply) {
  try {
    if constexpr (kBuiltWithGrpc) {
      if (is_grpc(endpoint)) return read_grpc_metadata(reply);
    }
    return read_http_metadata(reply);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("reading what {} says about model '{}': {}", endpoint.authority, endpoint.model, error.what()));
  }
}

std::optional<std::vector<ModelInput>> describe(const Endpoint& endpoint, const std::stop_token& stop) {
  static_cast<void>(is_grpc(endpoint));
  const Requests requests = metadata_request(endpoint);
  Target target(endpoint, requests, 1, 1);
  std::string reply;
  Shared& shared = target.shared();
  shared.reply = &reply;
  if (!target.connect(stop)) return std::nullopt;
  static_cast<void>(target.submit(SteadyClock::now()));
  std::optional<measure::Outcome> outcome;
  while (!outcome) {
    if (stop.stop_requested()) return std::nullopt;
    target.poll([&](Time, measure::Outcome ended) { outcome = ended; });
    if (!outcome) target.rest(SteadyClock::now() + kLook);
  }
  if (*outcome == measure::Outcome::right) return read_metadata(endpoint, reply);
  const std::string asking = fmt::format("asking {} for model '{}': ", endpoint.authority, endpoint.model);
  if (shared.unauthorized) throw UsageError(asking + shared.failure);
  if (shared.unknown) throw UsageError(asking + shared.failure, Errc::not_found);
  const std::string& said = shared.refusal.empty() ? shared.failure : shared.refusal;
  throw SystemError(Errc::system, asking + (said.empty() ? shared.why_down : said));
}

RingDescription describe_ring(const std::string& url) {
  const Client client(url, 1);
  return {.model = client.model(), .query_bytes = client.query_bytes(), .inputs = client.inputs()};
}

ServerLoad load_rings(const RingEndpoint& endpoint, std::uint32_t generators, const measure::LoadOptions& options) {
  measure::LoadOptions chosen = options;
  chosen.late_limit = endpoint.patience;
  measure::validate(chosen);
  if (endpoint.queries.empty()) throw UsageError("a load needs at least one query");
  if (generators < 1) throw UsageError("a load needs at least one generator");
  std::vector<RingTarget> targets;
  targets.reserve(generators);
  for (std::uint32_t i = 0; i < generators; ++i) targets.emplace_back(endpoint);
  ServerLoad result;
  result.load = measure::open_loop<RingTarget>(targets, chosen);
  for (const RingTarget& target : targets) {
    result.connections_lost += target.lost;
    if (result.failure.empty()) result.failure = target.failure;
    if (result.refusal.empty()) result.refusal = target.refusal;
  }
  return result;
}

ServerLoad load(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs, const Way& way,
                const measure::LoadOptions& options) {
  measure::LoadOptions chosen = options;
  chosen.late_limit = endpoint.patience;
  measure::validate(chosen);
  check_way(endpoint, way);
  const Requests requests =
      infer_requests(endpoint, inputs, {.deadline = way.deadline, .with_high = way.high_share > 0});
  std::vector<Target> targets;
  for (std::uint32_t i = 0; i < way.generators; ++i) {
    const std::uint32_t share = way.connections / way.generators + (i < way.connections % way.generators ? 1 : 0);
    targets.emplace_back(endpoint, requests, share, way.streams);
    if (way.high_share > 0) targets.back().shared().priorities.emplace(way.high_share, options.seed + i);
  }
  ServerLoad result;
  for (Target& target : targets) {
    if (target.connect(options.stop)) continue;
    result.load.interrupted = true;
    return result;
  }
  result.load = measure::open_loop<Target>(targets, chosen);
  for (Target& target : targets) {
    const Shared& shared = target.shared();
    result.connections_lost += shared.connections_lost;
    if (result.failure.empty()) result.failure = shared.failure;
    if (result.refusal.empty()) result.refusal = shared.refusal;
  }
  if (way.high_share > 0) result.priorities = sum_of_priorities(targets);
  return result;
}

}  // namespace headrace::wire::client
