#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
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

using wire::Model;
using wire::ModelRequest;
using wire::RequestTrace;
using wire::ServerConfig;

/// A server that releases the GIL whenever it waits, including at its end, because queries in flight may need the GIL
/// to finish.
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

  /// Checks for signals twenty times a second.
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
  void change(const std::string& name, std::optional<double> share, std::optional<std::uint32_t> in_flight_max,
              std::optional<double> latency_max, std::optional<std::uint32_t> waiting_max) {
    wire::ModelChange change{.plan = {.share = share, .in_flight_max = in_flight_max, .latency_max = {}},
                             .waiting_max = waiting_max};
    if (latency_max) change.plan.latency_max = to_duration("latency_max", *latency_max);
    const GilRelease released;
    server_->change(name, change);
  }
  [[nodiscard]] bool uses(const serve::Engine& engine) {
    const GilRelease released;
    return server_->uses(engine);
  }
  void reload_credentials() {
    const GilRelease released;
    server_->reload_credentials();
  }
  [[nodiscard]] std::vector<RequestTrace> take_traces(std::size_t most, double seconds) {
    const Duration limit = to_duration("seconds", seconds);
    const GilRelease released;
    return server_->take_traces(most, limit);
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

void bind_request_trace(nb::module_& module) {
  const auto bytes_of = [](const auto& bytes) { return nb::bytes(bytes.data(), bytes.size()); };
  nb::class_<RequestTrace>(
      module, "RequestTrace",
      "A traced request for inference. Times are nanoseconds since 1970, and 0 for stages that it did not reach.")
      .def_prop_ro("trace_id", [=](const RequestTrace& self) { return bytes_of(self.parent.trace); })
      .def_prop_ro(
          "parent_span_id", [=](const RequestTrace& self) { return bytes_of(self.parent.span); }, "The caller's span.")
      .def_ro("model", &RequestTrace::model)
      .def_ro("version", &RequestTrace::version)
      .def_ro("protocol", &RequestTrace::protocol, "\"http\" or \"grpc\".")
      .def_ro("high", &RequestTrace::high, "Whether it had high priority.")
      .def_ro("status", &RequestTrace::status, "The HTTP status, for both protocols.")
      .def_ro("queries", &RequestTrace::queries)
      .def_ro("arrived", &RequestTrace::arrived, "When its first byte came.")
      .def_ro("began", &RequestTrace::began, "When it had been read and checked.")
      .def_ro("submitted", &RequestTrace::submitted, "When the last of its queries went to the engine.")
      .def_ro("back", &RequestTrace::back, "When the server had all answers.")
      .def_ro("ended", &RequestTrace::ended, "When the reply was ready to send.");
}

std::string text_of(const std::optional<std::filesystem::path>& file) { return file ? file->string() : std::string(); }

void init_server(ServerHandle* self, std::vector<Model> models, std::string address, std::uint16_t http_port,
                 std::optional<std::uint16_t> grpc_port, std::uint32_t threads, std::uint32_t connections_max,
                 std::size_t head_bytes_max, std::size_t body_bytes_max, std::size_t memory_max,
                 std::uint32_t waiting_max, double request_max, double idle_max, bool page, bool shared_memory,
                 bool cuda_shared_memory, std::uint64_t shared_memory_max, bool model_control,
                 std::optional<std::string> shm, std::uint32_t shm_threads, std::uint32_t shm_clients_max,
                 std::uint32_t shm_slots_max, double shm_spin,
                 const std::optional<std::filesystem::path>& tls_certificate,
                 const std::optional<std::filesystem::path>& tls_key,
                 const std::optional<std::filesystem::path>& tls_clients,
                 const std::optional<std::filesystem::path>& token_file, bool plain_tokens, std::uint32_t traces_max,
                 int watcher) {
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
                           .cuda_shared_memory = cuda_shared_memory,
                           .shared_memory_max = shared_memory_max,
                           .shm = std::move(shm).value_or(""),
                           .shm_threads = shm_threads,
                           .shm_clients_max = shm_clients_max,
                           .shm_slots_max = shm_slots_max,
                           .shm_spin = to_duration("shm_spin", shm_spin),
                           .model_control = model_control,
                           .tls_certificate = text_of(tls_certificate),
                           .tls_key = text_of(tls_key),
                           .tls_clients = text_of(tls_clients),
                           .token_file = text_of(token_file),
                           .plain_tokens = plain_tokens,
                           .traces_max = traces_max,
                           .watcher = watcher},
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
          "cuda_shared_memory"_a = usual.cuda_shared_memory, "shared_memory_max"_a = usual.shared_memory_max,
          "model_control"_a = usual.model_control, "shm"_a = nb::none(), "shm_threads"_a = usual.shm_threads,
          "shm_clients_max"_a = usual.shm_clients_max, "shm_slots_max"_a = usual.shm_slots_max,
          "shm_spin"_a = to_seconds(usual.shm_spin), "tls_certificate"_a = nb::none(), "tls_key"_a = nb::none(),
          "tls_clients"_a = nb::none(), "token_file"_a = nb::none(), "plain_tokens"_a = usual.plain_tokens,
          "traces_max"_a = usual.traces_max, "watcher"_a = usual.watcher,
          "`address` is IPv4 or IPv6, \"0.0.0.0\" or \"::\" for every interface; port 0 takes any that is free. gRPC "
          "is spoken "
          "where `grpc_port` is given, usually 8001. Each "
          "of the `threads` has its connections, and is a client of every engine. `head_bytes_max` limits the line "
          "and headers of a request, `body_bytes_max` its tensors and JSON or a message of gRPC, `memory_max` all "
          "requests and replies "
          "together. `waiting_max` queries of a model may wait for slots of its engine, for each thread. Seconds: "
          "`request_max` from a request's first byte to its last, `idle_max` between requests, and without progress "
          "of a reply. With `page`, browsers get a page at / that shows what the server does and asks a query. With "
          "`shared_memory` clients may register POSIX shared memory for their tensors, and can then have every object "
          "in "
          "/dev/shm read and written that this process may open. With `cuda_shared_memory` they may register memory of "
          "CUDA devices, and can then have all device memory read and written that a process shares; it needs a CUDA "
          "device. All regions together have `shared_memory_max` bytes at most. With `model_control` they may ask for "
          "models to be loaded, changed and unloaded, which "
          "next_model_request() hands on. With a name `shm`, processes of this machine and user may ask through shared "
          "memory, by headrace.Client(\"shm://NAME/MODEL\"): `shm_clients_max` of them at most, each with at most "
          "`shm_slots_max` queries in flight. `shm_threads` answer them, each a client of every engine, and look for "
          "queries for `shm_spin` seconds before they sleep. "
          "With `tls_certificate` and `tls_key`, PEM files, both ports speak TLS; with `tls_clients`, a PEM file of "
          "authorities, clients have to show a certificate of one of them. With `token_file`, a token a line and its "
          "name behind a space, each request has to carry one of the tokens, as \"Authorization: Bearer TOKEN\"; only "
          "the server's health and the page, which shows nothing without one, need none. Tokens need TLS where "
          "`address` is not of the loopback, unless `plain_tokens` allows them without. `traces_max` requests whose "
          "caller samples a trace are kept for take_traces(); 0 traces none. `watcher` is a connected "
          "stream "
          "socket, which the server closes, for a program that watches this one: it asks for the server's health over "
          "it, without TLS. "
          "Raises UsageError for models or limits that cannot be "
          "served (such as an "
          "engine whose "
          "Plan.clients_max is below `threads` and `shm_threads` together), SystemError where the address or a port "
          "cannot be had, an error "
          "with Errc.not_supported for gRPC or TLS in a build without it.")
      .def_prop_ro(
          "http_port", [](const ServerHandle& self) { return self.server().http_port(); },
          "The port that it listens on.")
      .def_prop_ro(
          "grpc_port", [](const ServerHandle& self) { return self.server().grpc_port(); },
          "The port for gRPC; None if gRPC is off.")
      .def_prop_ro(
          "shm",
          [](const ServerHandle& self) {
            const std::string& name = self.server().shm();
            return name.empty() ? std::nullopt : std::optional(name);
          },
          "The name for clients of shared memory, in shm://NAME/MODEL; None if there are none.")
      .def(
          "statistics", [](const ServerHandle& self) { return self.server().statistics(); },
          "What the server has done so far. Callable from any thread.")
      .def(
          "model_statistics", [](const ServerHandle& self) { return self.server().model_statistics(); },
          "One for each name, in the order of their appearance, including unloaded ones. Callable from any thread, "
          "also after stop().")
      .def("load", &ServerHandle::load, "model"_a,
           "Serves `model` from now on, in place of the model of the same name, if any. After it returns, the previous "
           "model answers no new requests, but finishes those that it has begun; see uses(). The counts of the name "
           "continue. Callable from any thread. Raises UsageError for a model that cannot be served or after stop(); "
           "nothing changes then.")
      .def("unload", &ServerHandle::unload, "name"_a, "reason"_a = "unloaded",
           "Stops serving the model of a name: requests for it are refused with `reason` (404, NOT_FOUND). Returns "
           "whether there was one. Requests that it has begun are answered, see uses(). Callable from any thread.")
      .def("change", &ServerHandle::change, "name"_a, nb::kw_only(), "share"_a = nb::none(),
           "in_flight_max"_a = nb::none(), "latency_max"_a = nb::none(), "waiting_max"_a = nb::none(),
           "Changes a model while it is served: the plan of its engine, as Engine.change() does, and the queries that "
           "may wait for slots of the engine, for each thread (0: the server's `waiting_max`). No request is lost. A "
           "request that waits keeps its deadline and its place; under a lower `waiting_max` a new one waits only in "
           "the place of another until fewer wait. Raises UsageError if there is no such model, and otherwise as "
           "Engine.change(); nothing has changed then. Callable from any thread.")
      .def("uses", &ServerHandle::uses, "engine"_a,
           "Whether requests may still come to an engine of this server, or are not yet answered. Once it returns "
           "False for an engine whose model was replaced or unloaded, the engine may be stopped.")
      .def("take_traces", &ServerHandle::take_traces, "most"_a, "seconds"_a,
           "Requests of traces that have ended, in that order: at most `most`, once there is one or `seconds` have "
           "passed. After stop() returns the rest. Needs `traces_max`. Callable from any thread.")
      .def("reload_credentials", &ServerHandle::reload_credentials,
           "Reads the files of certificates and tokens again. New connections use the new certificates, and requests "
           "on all connections the new tokens. Open connections stay. Callable from any thread. Raises as the "
           "constructor does, and UsageError if there are none or after stop(); the previous ones stay in use then.")
      .def("next_model_request", &ServerHandle::next_model_request, "seconds"_a,
           "The next request of a client to load, change or unload a model; None after `seconds`, and after stop(). "
           "Requests "
           "come one after the other, and each must be ended. Needs `model_control`. Callable from any thread.")
      .def("end_model_request", &ServerHandle::end_model_request, "request"_a, "failure"_a = nb::none(),
           "Tells the client that its request is done, or why it has failed; a name without a model is listed with "
           "that reason.")
      .def("drain", &ServerHandle::drain, "seconds"_a,
           "Reports that it is not ready, accepts no more connections, closes idle ones, and waits until every request "
           "that has begun is answered, or `seconds` have passed; returns whether all were answered.")
      .def("stop", &ServerHandle::stop,
           "Closes all connections and ends the threads. It waits for queries in flight, and drops their answers.")
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
  bind_wire_models(module);
  bind_request_trace(module);
  bind_wire_statistics(module);
  bind_server(module);
}

}  // namespace headrace::python
