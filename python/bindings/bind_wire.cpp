#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/wire/server.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using wire::DataType;
using wire::DurationHistogram;
using wire::Model;
using wire::ModelRequest;
using wire::ModelStatistics;
using wire::Outcomes;
using wire::ProtocolStatistics;
using wire::ServerConfig;
using wire::ServerStatistics;
using wire::Tensor;

/// A server that gives up the GIL wherever it waits, in its end as well: queries under way may need the GIL to end.
class ServerHandle {
 public:
  ServerHandle(ServerConfig config, std::vector<Model> models) {
    const GilRelease released;
    server_.emplace(std::move(config), std::move(models));
  }
  ~ServerHandle() {
    const GilRelease released;
    server_.reset();
  }
  ServerHandle(const ServerHandle&) = delete;
  ServerHandle& operator=(const ServerHandle&) = delete;

  [[nodiscard]] const wire::Server& server() const noexcept { return *server_; }

  /// Looks for signals twenty times a second.
  [[nodiscard]] bool drain(double seconds) {
    constexpr Duration kLook = std::chrono::milliseconds(50);
    const Time until = SteadyClock::now() + to_duration("seconds", seconds);
    while (true) {
      const Duration left = std::max(until - SteadyClock::now(), Duration::zero());
      {
        const GilRelease released;
        if (server_->drain(std::min(left, kLook))) return true;
      }
      if (left <= kLook) return false;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  void stop() {
    const GilRelease released;
    server_->stop();
  }

  void load(Model model) {
    const GilRelease released;
    server_->load(std::move(model));
  }
  [[nodiscard]] bool unload(const std::string& name, const std::string& reason) {
    const GilRelease released;
    return server_->unload(name, reason);
  }
  [[nodiscard]] bool uses(const serve::Engine& engine) {
    const GilRelease released;
    return server_->uses(engine);
  }
  [[nodiscard]] std::optional<ModelRequest> next_model_request(double seconds) {
    const Duration limit = to_duration("seconds", seconds);
    const GilRelease released;
    return server_->next_model_request(limit);
  }
  void end_model_request(const ModelRequest& request, const std::optional<std::string>& failure) {
    const GilRelease released;
    server_->end_model_request(request, failure);
  }

 private:
  std::optional<wire::Server> server_;
};

void bind_tensor(nb::module_& module) {
  nb::enum_<DataType>(module, "DataType", "The types of a tensor's elements, as the Open Inference Protocol has them.")
      .value("boolean", DataType::boolean)
      .value("uint8", DataType::uint8)
      .value("uint16", DataType::uint16)
      .value("uint32", DataType::uint32)
      .value("uint64", DataType::uint64)
      .value("int8", DataType::int8)
      .value("int16", DataType::int16)
      .value("int32", DataType::int32)
      .value("int64", DataType::int64)
      .value("fp16", DataType::fp16)
      .value("fp32", DataType::fp32)
      .value("fp64", DataType::fp64);
  nb::class_<Tensor>(module, "Tensor",
                     "A part of a query or of an answer, which clients send or get as one tensor. A request of N "
                     "queries has N such parts: its tensor has the shape [N, *shape].")
      .def(
          "__init__",
          [](Tensor* self, std::string name, DataType type, std::vector<std::int64_t> shape, std::size_t offset) {
            new (self) Tensor{.name = std::move(name), .type = type, .shape = std::move(shape), .offset = offset};
          },
          "name"_a, "type"_a, "shape"_a = std::vector<std::int64_t>{}, nb::kw_only(), "offset"_a = 0,
          "`shape` is that of one query, empty for a single element; `offset` is where it begins in the query or "
          "answer, in bytes.")
      .def_ro("name", &Tensor::name)
      .def_ro("type", &Tensor::type)
      .def_prop_ro(
          "datatype", [](const Tensor& tensor) { return std::string(to_string(tensor.type)); },
          "The type as requests and replies write it, such as \"FP32\".")
      .def_ro("shape", &Tensor::shape, "Of one query; empty for a single element.")
      .def_ro("offset", &Tensor::offset, "Where it begins in the query or answer, in bytes.")
      .def_prop_ro("bytes", &Tensor::bytes, "Bytes in one query or answer.")
      .def("__repr__", [](const Tensor& tensor) {
        return fmt::format("Tensor('{}', {}, [{}], offset={})", tensor.name, to_string(tensor.type),
                           fmt::join(tensor.shape, ", "), tensor.offset);
      });
}

void bind_model(nb::module_& module) {
  nb::class_<Model>(module, "Model",
                    "An operator that clients of a server ask by name; headrace.wire.model() makes one of an engine.")
      .def(
          "__init__",
          [](Model* self, std::shared_ptr<serve::Engine> engine, std::vector<Tensor> inputs,
             std::vector<Tensor> outputs, std::string name, std::string version, std::uint32_t batch_max,
             std::string query_type, std::string answer_type) {
            Model model{.name = std::move(name),
                        .version = std::move(version),
                        .engine = std::move(engine),
                        .inputs = std::move(inputs),
                        .outputs = std::move(outputs),
                        .batch_max = batch_max,
                        .query_type = std::move(query_type),
                        .answer_type = std::move(answer_type)};
            check_model(model);
            new (self) Model(std::move(model));
          },
          "engine"_a, "inputs"_a, "outputs"_a, nb::kw_only(), "name"_a, "version"_a = Model{}.version,
          "batch_max"_a = Model{}.batch_max, "query_type"_a = "", "answer_type"_a = "",
          "`inputs` are the parts of a query, `outputs` those of an answer; bytes of a query that no input covers are "
          "zero. A name has letters, digits, '.', '_' and '-'. A request has at most `batch_max` queries. "
          "`query_type` and `answer_type` say how clients of shared memory show them, as Operator.answer_type does; "
          "as the engine's operator says where they are empty. Raises "
          "UsageError for a name that is none, for two tensors of one name, and for tensors that overlap or leave "
          "their query or answer.")
      .def_ro("name", &Model::name)
      .def_ro("version", &Model::version)
      .def_ro("engine", &Model::engine)
      .def_ro("inputs", &Model::inputs, "Parts of a query.")
      .def_ro("outputs", &Model::outputs, "Parts of an answer.")
      .def_ro("batch_max", &Model::batch_max, "Queries in one request.")
      .def("__repr__", [](const Model& model) {
        return fmt::format("<headrace.wire.Model {}: {} inputs, {} outputs>", model.name, model.inputs.size(),
                           model.outputs.size());
      });
}

void bind_model_request(nb::module_& module) {
  nb::class_<ModelRequest>(module, "ModelRequest", "What a client asks to be done with a model of a server.")
      .def_ro("model", &ModelRequest::model, "A name that the server knows.")
      .def_ro("load", &ModelRequest::load, "To be loaded, anew if it is already; otherwise to be unloaded.")
      .def("__repr__", [](const ModelRequest& request) {
        return fmt::format("<headrace.wire.ModelRequest: {} {}>", request.load ? "load" : "unload", request.model);
      });
}

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
  nb::class_<ProtocolStatistics>(module, "ProtocolStatistics",
                                 "The requests for inference that a model received over one protocol.")
      .def_ro("requests", &ProtocolStatistics::requests)
      .def_ro("queries", &ProtocolStatistics::queries,
              "Queries share the outcome of their request. Invalid requests count none.")
      .def_ro("durations", &ProtocolStatistics::durations,
              "Answered requests: from the request being read to its reply being ready to send.")
      .def_prop_ro(
          "unanswered", [](const ProtocolStatistics& self) { return to_seconds(self.unanswered); },
          "Sum of the same durations of all other requests, without invalid ones.");
  nb::class_<ModelStatistics>(module, "ModelStatistics", "What a server's model has done since the server began.")
      .def_ro("name", &ModelStatistics::name)
      .def_ro("version", &ModelStatistics::version)
      .def_ro("loaded", &ModelStatistics::loaded, "It has not been unloaded.")
      .def_ro("ready", &ModelStatistics::ready, "It is loaded, and its engine has not failed.")
      .def_ro("http", &ModelStatistics::http)
      .def_ro("grpc", &ModelStatistics::grpc)
      .def_ro("shm", &ModelStatistics::shm, "Through shared memory, where each query is a request.")
      .def_ro("queries_waiting", &ModelStatistics::queries_waiting, "Queries that wait for a slot of the engine now.")
      .def_ro("queries_in_flight", &ModelStatistics::queries_in_flight, "Queries that the engine has now.")
      .def_ro("last_inference", &ModelStatistics::last_inference,
              "When it answered last, in milliseconds since 1970; 0: never.");
}

void bind_wire_statistics(nb::module_& module) {
  nb::class_<ServerStatistics>(module, "ServerStatistics", "What a server has done since it began.")
      .def_ro("connections", &ServerStatistics::connections, "Accepted.")
      .def_ro("connections_open", &ServerStatistics::connections_open, "Open now.")
      .def_ro("connections_refused", &ServerStatistics::connections_refused,
              "Closed since `connections_max` were open: those whose clients had been silent for longest, or else new "
              "ones.")
      .def_ro("requests", &ServerStatistics::requests,
              "Answered, with whatever status; of a stream of gRPC, each message.")
      .def_ro("failed", &ServerStatistics::failed, "Those among them with an error.")
      .def_ro("refused", &ServerStatistics::refused,
              "Those among them for which there was no room (429, 503; in gRPC, too).")
      .def_ro("http", &ServerStatistics::http, "Those over HTTP, by outcome.")
      .def_ro("grpc", &ServerStatistics::grpc, "Those over gRPC, by outcome.")
      .def_ro("shm", &ServerStatistics::shm, "Those through shared memory, by outcome.")
      .def_ro("memory_bytes", &ServerStatistics::memory_bytes, "Taken by requests and replies now.")
      .def_ro("memory_limit_bytes", &ServerStatistics::memory_limit_bytes, "The server's `memory_max`.");
}

void init_server(ServerHandle* self, std::vector<Model> models, std::string address, std::uint16_t http_port,
                 std::optional<std::uint16_t> grpc_port, std::uint32_t threads, std::uint32_t connections_max,
                 std::size_t head_bytes_max, std::size_t body_bytes_max, std::size_t memory_max,
                 std::uint32_t waiting_max, double request_max, double idle_max, bool page, bool shared_memory,
                 std::uint64_t shared_memory_max, bool model_control, std::optional<std::string> shm,
                 std::uint32_t shm_threads, std::uint32_t shm_clients_max, std::uint32_t shm_slots_max,
                 double shm_spin) {
  new (self) ServerHandle({.address = std::move(address),
                           .http_port = http_port,
                           .grpc_port = grpc_port,
                           .threads = threads,
                           .connections_max = connections_max,
                           .head_bytes_max = head_bytes_max,
                           .body_bytes_max = body_bytes_max,
                           .memory_max = memory_max,
                           .waiting_max = waiting_max,
                           .request_max = to_duration("request_max", request_max),
                           .idle_max = to_duration("idle_max", idle_max),
                           .page = page,
                           .shared_memory = shared_memory,
                           .shared_memory_max = shared_memory_max,
                           .shm = std::move(shm).value_or(""),
                           .shm_threads = shm_threads,
                           .shm_clients_max = shm_clients_max,
                           .shm_slots_max = shm_slots_max,
                           .shm_spin = to_duration("shm_spin", shm_spin),
                           .model_control = model_control},
                          std::move(models));
}

void bind_server(nb::module_& module) {
  const ServerConfig usual;
  nb::class_<ServerHandle>(
      module, "Server",
      "Serves models to other processes: the Open Inference Protocol (KServe v2) over HTTP/1.1, "
      "with JSON and binary tensors, and over gRPC, as Triton's clients speak it. It listens and answers from "
      "when it is made until stop(), or the end of a with block.")
      .def(
          "__init__", &init_server, "models"_a, nb::kw_only(), "address"_a = usual.address,
          "http_port"_a = usual.http_port, "grpc_port"_a = usual.grpc_port, "threads"_a = usual.threads,
          "connections_max"_a = usual.connections_max, "head_bytes_max"_a = usual.head_bytes_max,
          "body_bytes_max"_a = usual.body_bytes_max, "memory_max"_a = usual.memory_max,
          "waiting_max"_a = usual.waiting_max, "request_max"_a = to_seconds(usual.request_max),
          "idle_max"_a = to_seconds(usual.idle_max), "page"_a = usual.page, "shared_memory"_a = usual.shared_memory,
          "shared_memory_max"_a = usual.shared_memory_max, "model_control"_a = usual.model_control,
          "shm"_a = nb::none(), "shm_threads"_a = usual.shm_threads, "shm_clients_max"_a = usual.shm_clients_max,
          "shm_slots_max"_a = usual.shm_slots_max, "shm_spin"_a = to_seconds(usual.shm_spin),
          "`address` is IPv4 or IPv6, \"0.0.0.0\" or \"::\" for every interface; port 0 takes any that is free. gRPC "
          "is spoken "
          "where `grpc_port` is given, usually 8001. Each "
          "of the `threads` has its connections, and is a client of every engine. `head_bytes_max` limits the line "
          "and headers of a request, `body_bytes_max` its tensors and JSON or a message of gRPC, `memory_max` all "
          "requests and replies "
          "together. `waiting_max` queries of a model may wait for slots of its engine, for each thread. Seconds: "
          "`request_max` from a request's first byte to its last, `idle_max` between requests, and without progress "
          "of a reply. With `page`, browsers get a page at / that shows what the server does and asks a query. With "
          "`shared_memory` clients may register POSIX shared memory for their tensors, "
          "`shared_memory_max` bytes at most, and can then have every object in /dev/shm read and written that this "
          "process may open. With `model_control` they may ask for models to be loaded and unloaded, which "
          "next_model_request() hands on. With a name `shm`, processes of this machine and user may ask through shared "
          "memory, by headrace.Client(\"shm://NAME/MODEL\"): `shm_clients_max` of them at most, each with at most "
          "`shm_slots_max` queries in flight. `shm_threads` answer them, each a client of every engine, and look for "
          "queries for `shm_spin` seconds before they sleep. Raises UsageError for models or limits that cannot be "
          "served (such as an "
          "engine whose "
          "Plan.clients_max is below `threads` and `shm_threads` together), SystemError where the address or a port "
          "cannot be had, an error "
          "with Errc.not_supported for gRPC in a build without it.")
      .def_prop_ro(
          "http_port", [](const ServerHandle& self) { return self.server().http_port(); },
          "The port that is listened to.")
      .def_prop_ro(
          "grpc_port", [](const ServerHandle& self) { return self.server().grpc_port(); },
          "The port for gRPC; None where it is not spoken.")
      .def_prop_ro(
          "shm",
          [](const ServerHandle& self) {
            const std::string& name = self.server().shm();
            return name.empty() ? std::nullopt : std::optional(name);
          },
          "The name for clients of shared memory, in shm://NAME/MODEL; None where there are none.")
      .def("statistics", [](const ServerHandle& self) { return self.server().statistics(); })
      .def(
          "model_statistics", [](const ServerHandle& self) { return self.server().model_statistics(); },
          "One for each name, in the order in which they came, also where it is not loaded. Any thread may ask, after "
          "stop() as well.")
      .def("load", &ServerHandle::load, "model"_a,
           "Serves `model` from then on, in the place of the model that has its name, if any. Once this returns, no "
           "request that comes is answered by the former; those that it has begun are, see uses(). The counts of the "
           "name go on. Any thread. Raises UsageError for a model that cannot be served or after stop(); then nothing "
           "has changed.")
      .def("unload", &ServerHandle::unload, "name"_a, "reason"_a = "unloaded",
           "Serves the model of a name no more: requests for it are refused with `reason` (404, NOT_FOUND). Whether "
           "there was one. Those that it has begun are answered, see uses(). Any thread.")
      .def("uses", &ServerHandle::uses, "engine"_a,
           "Whether requests may still come to an engine of this server, or are not yet answered. Once it says no for "
           "an engine whose model was replaced or unloaded, the engine may be stopped.")
      .def("next_model_request", &ServerHandle::next_model_request, "seconds"_a,
           "What a client asks to be loaded or unloaded, once one does; None after `seconds`, and after stop(). "
           "Requests come one after the other, and each is to be ended. With `model_control`. Any thread.")
      .def("end_model_request", &ServerHandle::end_model_request, "request"_a, "failure"_a = nb::none(),
           "Tells the client that its request is done, or why it has failed; a name that has no model is listed with "
           "that.")
      .def("drain", &ServerHandle::drain, "seconds"_a,
           "Says that it is not ready, accepts no more connections, closes those that are idle, and waits until every "
           "request that has begun is answered, or `seconds` have passed; whether all were answered.")
      .def("stop", &ServerHandle::stop,
           "Closes all connections and ends the threads. Queries under way are waited for, and their answers dropped.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Server"))
      .def(
          "__exit__", [](ServerHandle& self, const nb::args&) { self.stop(); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("__repr__", [](const ServerHandle& self) {
        return fmt::format("<headrace.wire.Server: HTTP port {}>", self.server().http_port());
      });
}

}  // namespace

void bind_wire(nb::module_& module) {
  bind_tensor(module);
  bind_model(module);
  bind_model_request(module);
  bind_outcomes(module);
  bind_model_statistics(module);
  bind_wire_statistics(module);
  bind_server(module);
}

}  // namespace headrace::python
