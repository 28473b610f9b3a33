#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "headrace/wire/server.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

using wire::DurationHistogram;
using wire::ModelStatistics;
using wire::Outcomes;
using wire::PriorityStatistics;
using wire::ProtocolStatistics;
using wire::ServerStatistics;
using wire::StageHistograms;

void bind_outcomes(nb::module_& module) {
  nb::class_<Outcomes>(module, "Outcomes", "Requests, or queries of requests, by how they ended.")
      .def_ro("answered", &Outcomes::answered)
      .def_ro("invalid", &Outcomes::invalid,
              "The client's mistake: a wrong name, shape or size, or a feature the server lacks.")
      .def_ro("refused", &Outcomes::refused,
              "The server had no room, was about to stop, or its engine had failed (429, 503).")
      .def_ro("late", &Outcomes::late, "The deadline passed first, or the request took too long to arrive (408, 504).")
      .def_ro("cancelled", &Outcomes::cancelled,
              "The client left, or its call ended, before the answer. Counted for models only.")
      .def_ro("failed", &Outcomes::failed, "Any other error of the server (500).");
}

std::vector<double> bucket_bounds(const DurationHistogram& /*histogram*/) {
  std::vector<double> bounds;
  for (const Duration bound : DurationHistogram::kBounds) bounds.push_back(to_seconds(bound));
  return bounds;
}

void bind_model_statistics(nb::module_& module) {
  nb::class_<DurationHistogram>(module, "DurationHistogram", "Counts durations between fixed bounds, in seconds.")
      .def_prop_ro("bounds", &bucket_bounds, "1, 2 and 5 times each power of ten, from 1 us to 10 s.")
      .def_prop_ro(
          "counts",
          [](const DurationHistogram& self) {
            return std::vector<std::uint64_t>(self.counts.begin(), self.counts.end());
          },
          "counts[i] has the durations that are at most bounds[i] and above the bound before it; the last one has the "
          "rest.")
      .def_prop_ro("count", &DurationHistogram::count)
      .def_prop_ro("sum", [](const DurationHistogram& self) { return to_seconds(self.sum); });
  nb::class_<StageHistograms>(module, "StageHistograms",
                              "Where answered requests spent their time: of each request, `queue`, `engine` and "
                              "`reply` add up to `durations`. Not counted through shared memory, where the server sees "
                              "`engine` alone.")
      .def_ro("read", &StageHistograms::read, "From the request's first byte until it had been read and checked.")
      .def_ro("queue", &StageHistograms::queue, "From then until the last of its queries went to the engine.")
      .def_ro("engine", &StageHistograms::engine,
              "From then until the server had all answers: the operator, and the engine's own queue.")
      .def_ro("reply", &StageHistograms::reply, "From then until the reply was ready to send.");
  nb::class_<ProtocolStatistics>(module, "ProtocolStatistics",
                                 "The requests for inference that a model received over one protocol.")
      .def_ro("requests", &ProtocolStatistics::requests)
      .def_ro("queries", &ProtocolStatistics::queries,
              "Queries share the outcome of their request. Invalid requests count none.")
      .def_ro("durations", &ProtocolStatistics::durations,
              "Answered requests: from the request being read to its reply being ready to send.")
      .def_ro("stages", &ProtocolStatistics::stages, "The same requests, stage by stage.")
      .def_prop_ro(
          "unanswered", [](const ProtocolStatistics& self) { return to_seconds(self.unanswered); },
          "Sum of the same durations of all other requests, without invalid ones.");
  nb::class_<PriorityStatistics>(module, "PriorityStatistics",
                                 "The requests for inference of one priority, over HTTP and gRPC.")
      .def_ro("requests", &PriorityStatistics::requests,
              "Without those that could not be read, whose priority is not known.")
      .def_ro("queries_waiting", &PriorityStatistics::queries_waiting,
              "Queries that wait for a slot of the engine now.");
  nb::class_<ModelStatistics>(module, "ModelStatistics", "What a server's model has done since the server began.")
      .def_ro("name", &ModelStatistics::name)
      .def_ro("version", &ModelStatistics::version)
      .def_ro("loaded", &ModelStatistics::loaded, "It has not been unloaded.")
      .def_ro("ready", &ModelStatistics::ready, "It is loaded, and its engine has not failed.")
      .def_ro("http", &ModelStatistics::http)
      .def_ro("grpc", &ModelStatistics::grpc)
      .def_ro("shm", &ModelStatistics::shm, "Through shared memory, where each query is a request.")
      .def_ro("high", &ModelStatistics::high, "Requests of priority 1.")
      .def_ro("normal", &ModelStatistics::normal, "Requests of any other priority.")
      .def_ro("queries_waiting", &ModelStatistics::queries_waiting,
              "Queries that wait for a slot of the engine now, of both priorities.")
      .def_ro("queries_in_flight", &ModelStatistics::queries_in_flight, "Queries that the engine has now.")
      .def_ro("last_inference", &ModelStatistics::last_inference,
              "When it answered last, in milliseconds since 1970; 0: never.")
      .def_ro("share", &ModelStatistics::share,
              "What Server.change() may change, in force now; 0 if it is not loaded. The share of its engine ...")
      .def_prop_ro(
          "latency_max", [](const ModelStatistics& self) { return to_seconds(self.latency_max); },
          "... its bound in seconds, 0: none ...")
      .def_ro("in_flight_max", &ModelStatistics::in_flight_max, "... the queries that it takes from each thread ...")
      .def_ro("waiting_max", &ModelStatistics::waiting_max, "... and those that may wait for slots, for each thread.");
}

void bind_server_statistics(nb::module_& module) {
  nb::class_<ServerStatistics>(module, "ServerStatistics", "What a server has done since it began.")
      .def_ro("connections", &ServerStatistics::connections, "Accepted.")
      .def_ro("connections_open", &ServerStatistics::connections_open, "Open now.")
      .def_ro("connections_refused", &ServerStatistics::connections_refused,
              "Connections closed because `connections_max` were open: those whose clients had been silent for "
              "longest, or else new ones.")
      .def_ro("requests", &ServerStatistics::requests, "Answered with any status; for a gRPC stream, each message.")
      .def_ro("failed", &ServerStatistics::failed, "Those among them with an error.")
      .def_ro("refused", &ServerStatistics::refused, "Those rejected for lack of room (429, 503; in gRPC, too).")
      .def_ro("http", &ServerStatistics::http, "Those over HTTP, by outcome.")
      .def_ro("grpc", &ServerStatistics::grpc, "Those over gRPC, by outcome.")
      .def_ro("shm", &ServerStatistics::shm, "Those through shared memory, by outcome.")
      .def_ro("memory_bytes", &ServerStatistics::memory_bytes, "Memory of requests and replies now.")
      .def_ro("memory_limit_bytes", &ServerStatistics::memory_limit_bytes, "The server's `memory_max`.")
      .def_ro("unauthorized", &ServerStatistics::unauthorized,
              "Requests without an accepted token (401, UNAUTHENTICATED).")
      .def_ro("handshakes", &ServerStatistics::handshakes, "Completed TLS handshakes.")
      .def_ro("handshakes_failed", &ServerStatistics::handshakes_failed,
              "Failed handshakes: no certificate or a wrong one, no TLS at all, or too slow.")
      .def_ro("handshake_failure", &ServerStatistics::handshake_failure, "Why the last one failed; empty if none has.")
      .def_ro("traces_dropped", &ServerStatistics::traces_dropped,
              "Requests of traces that were not kept, see `traces_max`.")
      .def_ro("certificate_ends", &ServerStatistics::certificate_ends,
              "When the server's certificate ends, in seconds since 1970; 0 without TLS.");
}

}  // namespace

void bind_wire_statistics(nb::module_& module) {
  bind_outcomes(module);
  bind_model_statistics(module);
  bind_server_statistics(module);
}

}  // namespace headrace::python
