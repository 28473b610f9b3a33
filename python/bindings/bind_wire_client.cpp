#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "interrupt.hpp"
#include "load_options.hpp"
#include "wire/client/load.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using wire::client::Endpoint;
using wire::client::InputTensor;
using wire::client::ModelInput;
using wire::client::PriorityLoad;
using wire::client::PriorityLoads;
using wire::client::ServerLoad;

[[noreturn]] void raise_interrupt() {
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

std::vector<ModelInput> describe_model(const Endpoint& endpoint) {
  Interruptible interruptible;
  auto inputs = interruptible.run([&] { return wire::client::describe(endpoint, interruptible.token()); });
  if (!inputs) raise_interrupt();
  return *std::move(inputs);
}

ServerLoad load_server(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& requests,
                       std::uint32_t connections, std::uint32_t streams, std::optional<double> deadline,
                       double high_share, std::uint32_t generators, std::optional<double> rate,
                       std::string_view arrivals, std::uint64_t seed, const std::vector<double>& trace, double warm_up,
                       double window, int windows_max, int stable_windows, double stable_within,
                       const std::optional<WindowCallback>& progress) {
  Interruptible interruptible;
  measure::LoadOptions options =
      load_options(rate, arrivals, seed, trace, warm_up, window, windows_max, stable_windows, stable_within, 0);
  const WindowCallback on_window = progress ? interruptible.guard(*progress) : WindowCallback{};
  report_to(options, interruptible, on_window);
  wire::client::Way way{
      .connections = connections, .streams = streams, .generators = generators, .high_share = high_share};
  if (deadline) way.deadline = to_duration("deadline", *deadline);
  return interruptible.run([&] { return wire::client::load(endpoint, requests, way, options); });
}

wire::client::RingDescription describe_ring(const std::string& url) {
  const GilRelease released;
  return wire::client::describe_ring(url);
}

ServerLoad load_rings(const std::string& url, const std::vector<nb::bytes>& queries, std::uint32_t slots,
                      std::optional<double> deadline, double patience, std::uint32_t generators,
                      std::optional<double> rate, std::string_view arrivals, std::uint64_t seed,
                      const std::vector<double>& trace, double warm_up, double window, int windows_max,
                      int stable_windows, double stable_within, const std::optional<WindowCallback>& progress) {
  Interruptible interruptible;
  measure::LoadOptions options =
      load_options(rate, arrivals, seed, trace, warm_up, window, windows_max, stable_windows, stable_within, 0);
  const WindowCallback on_window = progress ? interruptible.guard(*progress) : WindowCallback{};
  report_to(options, interruptible, on_window);
  wire::client::RingEndpoint endpoint{.url = url, .slots = slots, .patience = to_duration("patience", patience)};
  for (const nb::bytes& query : queries) endpoint.queries.emplace_back(query.c_str(), query.size());
  if (deadline) endpoint.deadline = to_duration("deadline", *deadline);
  return interruptible.run([&] { return wire::client::load_rings(endpoint, generators, options); });
}

void bind_endpoint(nb::module_& module) {
  nb::class_<Endpoint>(module, "ServerEndpoint", "A model of a server of the Open Inference Protocol.")
      .def(
          "__init__",
          [](Endpoint* self, bool grpc, std::string address, std::uint16_t port, std::string authority,
             std::string model, double patience) {
            new (self) Endpoint{.protocol = grpc ? wire::Protocol::grpc : wire::Protocol::http,
                                .address = std::move(address),
                                .port = port,
                                .authority = std::move(authority),
                                .model = std::move(model),
                                .patience = to_duration("patience", patience)};
          },
          nb::kw_only(), "grpc"_a, "address"_a, "port"_a, "authority"_a, "model"_a, "patience"_a = 10.0,
          "`address` is a numerical one, `authority` the host and port as requests write them. `patience` is how long "
          "the server may take to accept connections, to come back after it has closed them, and to send anything "
          "while it has requests, in seconds.")
      .def(
          "secure",
          [](Endpoint& self, bool tls, std::string certificate, std::string key, std::string authorities,
             std::string server_name, std::string token_file) {
            wire::client::secure(self, {.tls = tls,
                                        .files = {.certificate = std::move(certificate),
                                                  .key = std::move(key),
                                                  .authorities = std::move(authorities)},
                                        .server_name = std::move(server_name),
                                        .token_file = std::move(token_file)});
          },
          nb::kw_only(), "tls"_a, "certificate"_a = "", "key"_a = "", "authorities"_a = "", "server_name"_a = "",
          "token_file"_a = "",
          "Reads PEM files and the token file; an empty name means none. `server_name` is the name that the server's "
          "certificate must be for. Raises SystemError for a file that cannot be read, and UsageError for one with "
          "invalid content.");
  nb::class_<ModelInput>(module, "ModelInput", "An input of a model, as its server describes it.")
      .def_ro("name", &ModelInput::name)
      .def_ro("datatype", &ModelInput::datatype)
      .def_ro("shape", &ModelInput::shape, "A dimension of any size is below 0.")
      .def("__repr__", [](const ModelInput& input) {
        return fmt::format("ModelInput('{}', {}, [{}])", input.name, input.datatype, fmt::join(input.shape, ", "));
      });
  nb::class_<InputTensor>(module, "InputTensor", "An input of a request.")
      .def(
          "__init__",
          [](InputTensor* self, std::string name, std::string datatype, std::vector<std::int64_t> shape,
             const nb::bytes& content) {
            new (self) InputTensor{.name = std::move(name),
                                   .datatype = std::move(datatype),
                                   .shape = std::move(shape),
                                   .bytes = std::string(content.c_str(), content.size())};
          },
          "name"_a, "datatype"_a, "shape"_a, "content"_a)
      .def_ro("name", &InputTensor::name)
      .def_prop_ro("content",
                   [](const InputTensor& input) { return nb::bytes(input.bytes.data(), input.bytes.size()); });
}

}  // namespace

void bind_wire_client(nb::module_& module) {
  bind_endpoint(module);
  nb::class_<PriorityLoad>(module, "PriorityLoad", "The outcomes of the requests of one priority, over the whole run.")
      .def_prop_ro("answered", [](const PriorityLoad& self) { return self.count(measure::Outcome::right); })
      .def_prop_ro("refused", [](const PriorityLoad& self) { return self.count(measure::Outcome::refused); })
      .def_prop_ro("late", [](const PriorityLoad& self) { return self.count(measure::Outcome::late); })
      .def_prop_ro("failed", [](const PriorityLoad& self) { return self.count(measure::Outcome::failed); })
      .def_prop_ro("lost", [](const PriorityLoad& self) { return self.count(measure::Outcome::lost); })
      .def_prop_ro("unsent", [](const PriorityLoad& self) { return self.count(measure::Outcome::unsent); })
      .def_ro("latency", &PriorityLoad::latency, "Answered requests, from their scheduled arrival.");
  nb::class_<PriorityLoads>(module, "PriorityLoads", "A load in which some requests had high priority.")
      .def_ro("high", &PriorityLoads::high)
      .def_ro("normal", &PriorityLoads::normal);
  nb::class_<ServerLoad>(module, "ServerLoad", "The results of a load on a server; each arrival is a request.")
      .def_ro("load", &ServerLoad::load)
      .def_ro("connections_lost", &ServerLoad::connections_lost)
      .def_ro("failure", &ServerLoad::failure, "The server's message for the first request that failed.")
      .def_ro("refusal", &ServerLoad::refusal, "The server's message for the first request that it refused.")
      .def_ro("priorities", &ServerLoad::priorities, "None if no request had high priority.");
  module.def("describe_model", &describe_model, "endpoint"_a,
             "The inputs of a model. Raises UsageError for a model that the server does not have, and SystemError if "
             "the server cannot be reached or does not answer.");
  module.def("load_server", &load_server, "endpoint"_a, "requests"_a, nb::kw_only(), "connections"_a = 4,
             "streams"_a = 64, "deadline"_a = nb::none(), "high_share"_a = 0.0, "generators"_a = 1,
             "rate"_a = nb::none(), "arrivals"_a = "poisson", "seed"_a = 1, "trace"_a = std::vector<double>{},
             "warm_up"_a = 0.05, "window"_a = 0.1, "windows_max"_a = 12, "stable_windows"_a = 3,
             "stable_within"_a = 0.05, "progress"_a = nb::none(),
             "Puts one load of `rate` requests/s on a model, with `requests` in turn, like load() on an engine. Each "
             "request is a list of InputTensor; a random `high_share` of them has high priority. Ctrl-C ends it early. "
             "Raises SystemError if the server cannot be reached, disconnects, or is silent for longer than the "
             "endpoint's patience.");
  nb::class_<wire::client::RingDescription>(module, "RingDescription",
                                            "A model behind shared memory, as its server describes it.")
      .def_ro("model", &wire::client::RingDescription::model)
      .def_ro("query_bytes", &wire::client::RingDescription::query_bytes)
      .def_ro("inputs", &wire::client::RingDescription::inputs);
  module.def("describe_ring", &describe_ring, "url"_a,
             "A server's description of the model at shm://NAME/MODEL. Raises as Client does.");
  module.def("load_rings", &load_rings, "url"_a, "queries"_a, nb::kw_only(), "slots"_a = 256, "deadline"_a = nb::none(),
             "patience"_a = 10.0, "generators"_a = 1, "rate"_a = nb::none(), "arrivals"_a = "poisson", "seed"_a = 1,
             "trace"_a = std::vector<double>{}, "warm_up"_a = 0.05, "window"_a = 0.1, "windows_max"_a = 12,
             "stable_windows"_a = 3, "stable_within"_a = 0.05, "progress"_a = nb::none(),
             "load_server() through shared memory: each request is a query, and each generator has a ring of `slots`.");
}

}  // namespace headrace::python
