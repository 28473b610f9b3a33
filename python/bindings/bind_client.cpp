#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "async_client_handle.hpp"
#include "bindings.hpp"
#include "client_handle.hpp"
#include "convert.hpp"
#include "gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

/// The attribute of an Engine that holds its operator.
constexpr const char* kOperator = "_operator";

using serve::Engine;
using serve::EngineStatistics;
using serve::StageSample;
using serve::StageTimes;

void bind_client_statistics(nb::module_& module) {
  nb::class_<StageTimes> stages(
      module, "StageTimes",
      "Mean seconds of the sampled queries in each stage; 0 for a stage that a plan does not have.");
  stages.def_ro("samples", &StageTimes::samples);
  const auto stage = [&]<Duration StageTimes::* Field>(const char* name, const char* doc) {
    stages.def_prop_ro(name, [](const StageTimes& times) { return to_seconds(times.*Field); }, doc);
  };
  stage.operator()<&StageTimes::queue>("queue", "From submission until a worker takes it up.");
  stage.operator()<&StageTimes::copy_in>("copy_in", "On the device's own clock, like the next two.");
  stage.operator()<&StageTimes::kernel>("kernel", "The operator.");
  stage.operator()<&StageTimes::copy_out>("copy_out", "The copy of the answer to the host.");
  stage.operator()<&StageTimes::host>("host", "From being taken up until answered, less the three stages above.");
  stage.operator()<&StageTimes::notify>("notify", "From the answer until the client sees it.");

  nb::class_<StageSample> sample(module, "StageSample", "The stages of one sampled query, in seconds.");
  const auto span = [&]<Duration StageSample::* Field>(const char* name, const char* doc) {
    sample.def_prop_ro(name, [](const StageSample& self) { return to_seconds(self.*Field); }, doc);
  };
  sample.def_prop_ro(
      "submitted", [](const StageSample& self) { return to_seconds(self.submitted); },
      "On a steady clock: only differences are meaningful.");
  span.operator()<&StageSample::queue>("queue", "From submission until taken up.");
  span.operator()<&StageSample::host>("host", "From being taken up until answered, less the next three.");
  span.operator()<&StageSample::copy_in>("copy_in", "On the device's own clock, like the next two.");
  span.operator()<&StageSample::kernel>("kernel", "The operator.");
  span.operator()<&StageSample::copy_out>("copy_out", "The copy of the answer to the host.");
  span.operator()<&StageSample::whole>("whole", "From submission until answered.");

  nb::class_<EngineStatistics>(module, "EngineStatistics", "What an engine has done since it started.")
      .def_ro("submitted", &EngineStatistics::submitted)
      .def_ro("answered", &EngineStatistics::answered, "Queries answered.")
      .def_ro("failed", &EngineStatistics::failed, "Queries with an error other than the next two.")
      .def_ro("cancelled", &EngineStatistics::cancelled)
      .def_ro("expired", &EngineStatistics::expired, "Queries past their deadline.")
      .def_ro("refused", &EngineStatistics::refused, "Queries not admitted.")
      .def_ro("stages", &EngineStatistics::stages)
      .def_ro("recent", &EngineStatistics::recent,
              "The last sampled queries of each worker, at most 32 of each, by `submitted`.");
}

/// Makes an engine that keeps the Python object of its operator, because that has attributes unknown to C++, such as
/// the Python function that it was made from.
nb::object make_engine(const DeviceOrName& device, const serve::Operator& op, const serve::Plan& plan) {
  const Device parsed = to_device(device);
  std::shared_ptr<Engine> engine;
  {
    const GilRelease released;
    engine = std::make_shared<Engine>(parsed, op, plan);
  }
  nb::object made = nb::cast(std::move(engine));
  made.attr(kOperator) = nb::find(op);
  return made;
}

void bind_engine(nb::module_& module) {
  nb::class_<Engine>(module, "Engine", nb::dynamic_attr(),
                     "Serves one operator on one device by one plan. It takes all memory and starts all threads when "
                     "it is made, and ends them in stop(), or at the end of a with block.")
      .def(nb::new_(&make_engine), "device"_a, "operator"_a, "plan"_a = serve::Plan{},
           "Raises UsageError for a plan that cannot work there, and DeviceError if the device has no room.")
      .def(
          "connect",
          [](const std::shared_ptr<Engine>& engine) {
            return std::make_unique<ClientHandle>(AnyClient(engine, engine->connect()));
          },
          "A client for the caller. Raises UsageError if Plan.clients_max clients are connected.")
      .def(
          "connect_async",
          [](const std::shared_ptr<Engine>& engine, std::size_t waiting_max) {
            return std::make_unique<AsyncClientHandle>(AnyClient(engine, engine->connect()), waiting_max);
          },
          nb::kw_only(), "waiting_max"_a = kWaitingMax,
          "A client for the coroutines of one asyncio event loop, in which `waiting_max` calls may wait for free "
          "slots. Raises UsageError if Plan.clients_max clients are connected.")
      .def(
          "drain",
          [](Engine& engine, std::optional<double> timeout) {
            const Duration limit = timeout ? to_duration("timeout", *timeout) : Duration::max();
            const GilRelease released;
            return engine.drain(limit);
          },
          "timeout"_a = nb::none(),
          "Waits until everything submitted so far has been answered, or `timeout` seconds have passed; returns "
          "whether it has been.")
      .def("stop", &Engine::stop, nb::call_guard<GilRelease>(),
           "Rejects new queries, returns those not yet started with the status stopped, and ends the threads. Clients "
           "may still poll.")
      .def(
          "change",
          [](Engine& engine, std::optional<double> share, std::optional<std::uint32_t> in_flight_max,
             std::optional<double> latency_max) {
            serve::PlanChange change{.share = share, .in_flight_max = in_flight_max, .latency_max = {}};
            if (latency_max) change.latency_max = to_duration("latency_max", *latency_max);
            const GilRelease released;
            engine.change(change);
          },
          nb::kw_only(), "share"_a = nb::none(), "in_flight_max"_a = nb::none(), "latency_max"_a = nb::none(),
          "Changes these fields of the plan while queries are in flight; none is lost, and each comes back once. It "
          "returns when the change is in force, and `plan` then has it. A new `share` restarts the pool: queries that "
          "no block works on yet wait some milliseconds. A lower `in_flight_max` leaves the queries beyond it in "
          "flight. `latency_max` holds for queries submitted from then on. Raises UsageError for values that the plan "
          "could not have had and, with the code full, if the device has no room for the share; nothing has changed "
          "then. Callable from any thread.")
      .def("statistics", &Engine::statistics, "What the engine has done so far. Callable from any thread.")
      .def_prop_ro(
          "plan", [](const Engine& engine) { return engine.plan(); },
          "A copy of the plan in force, with what change() has changed.")
      .def_prop_ro(
          "operator", [](nb::handle self) { return nb::object(self.attr(kOperator)); },
          nb::sig("def operator(self) -> Operator"))
      .def_prop_ro("device", &Engine::device)
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Engine"))
      .def(
          "__exit__",
          [](Engine& engine, const nb::args&) {
            const GilRelease released;
            engine.stop();
          },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("__repr__", [](const Engine& engine) {
        return fmt::format("<headrace.Engine: {} on {}, plan {}>", engine.op().name, engine.device().name(),
                           engine.plan().name);
      });
}

void bind_completions(nb::module_& module) {
  nb::class_<Completions>(module, "Completions",
                          "Queries that have come back, in order of submission: arrays with one entry or row each.")
      .def("__len__", [](const Completions& done) { return done.count; })
      .def_prop_ro(
          "tickets", [](const Completions& done) { return done.tickets; },
          nb::sig("def tickets(self) -> numpy.typing.NDArray[numpy.uint64]"))
      .def_prop_ro(
          "tags", [](const Completions& done) { return done.tags; },
          nb::sig("def tags(self) -> numpy.typing.NDArray[numpy.uint64]"))
      .def_prop_ro(
          "status", [](const Completions& done) { return done.status; },
          nb::sig("def status(self) -> numpy.typing.NDArray[numpy.uint8]"), "0 for an answer; see Errc.of_status().")
      .def_prop_ro(
          "answers", [](const Completions& done) { return done.answers; },
          nb::sig("def answers(self) -> numpy.typing.NDArray[typing.Any]"),
          "In the operator's type, or rows of bytes. Zeros for queries without an answer.");
}

void bind_client_class(nb::module_& module) {
  nb::class_<ClientHandle>(
      module, "Client",
      "A thread's client of an engine: made by Engine.connect(), or from the URL shm://NAME/MODEL for an engine that "
      "another process of this machine and user serves (`headrace serve --shm NAME`, or wire.Server with `shm`). Only "
      "one thread at a time may use it, otherwise it raises UsageError. Every query comes back exactly once. Queries "
      "are NumPy arrays of any type, or other buffers, of Operator.query_bytes bytes each; UsageError names both sizes "
      "if they differ. Deadlines and timeouts are seconds from now.")
      .def(nb::new_([](const std::string& url, std::uint32_t slots) {
             return std::make_unique<ClientHandle>(connect_to(url, slots));
           }),
           "url"_a, nb::kw_only(), "slots"_a = 0,
           "Connects to a server's model: shm://NAME/MODEL, or shm://NAME if the server has one model. `slots` queries "
           "may be in flight, a power of two; 0 is 256, or as many as the server allows if that is less. Once the "
           "server has ended, is about to stop or has another model under the name, unanswered queries come back as "
           "stopped. Raises UsageError for another URL and for a model that the server does not have, and SystemError "
           "if there is no such server, it does not answer for 10 s, or it has no room.")
      .def("submit", &ClientHandle::submit, "query"_a, nb::kw_only(), "tag"_a = 0, "deadline"_a = nb::none(),
           nb::sig(
               "def submit(self, query: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, tag: int = 0, "
               "deadline: float | None = None) -> int"),
           "Offers one query and returns its ticket. Raises Error with the code full if Plan.in_flight_max queries are "
           "in "
           "flight, not yet polled, or late and still being answered, and with the code stopped after Engine.stop().")
      .def("submit_many", &ClientHandle::submit_many, "queries"_a, nb::kw_only(), "tag"_a = 0,
           "deadline"_a = nb::none(),
           nb::sig("def submit_many(self, queries: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, "
                   "tag: int = 0, "
                   "deadline: float | None = None) -> int"),
           "Offers consecutive queries; returns how many were admitted, from the front. Query i has tag + i.")
      .def("poll", &ClientHandle::poll, "most"_a = 1024,
           "Returns queries that have come back, at most `most`, in order of submission; a query whose deadline has "
           "passed does not wait for those before it. Never waits.")
      .def("wait", &ClientHandle::wait, "ticket"_a, "timeout"_a = nb::none(),
           "Waits until that query has come back, at its deadline at the latest; it must still be polled. False if "
           "only `timeout` has passed.")
      .def("ask", &ClientHandle::ask, "query"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask(self, query: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, deadline: "
                   "float | None = None) -> typing.Any"),
           "Submits one query and waits for its answer, in the operator's type, or as an array of bytes without one. "
           "Only while nothing else of this client is in flight. Raises Error with the code of a query that failed.")
      .def("ask_many", &ClientHandle::ask_many, "queries"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask_many(self, queries: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, "
                   "deadline: float | None = None) -> "
                   "tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.uint8]]"),
           "Submits all queries, as many at once as there are slots, and waits: (answers, status), with a row and an "
           "entry each. A status is 0 for an answer; see Errc.of_status(). Ctrl-C drains the queries in flight and "
           "raises.")
      .def("cancel", &ClientHandle::cancel, "ticket"_a,
           "Requests that a query not be answered; if it has not started, it comes back with the status cancelled.")
      .def_prop_ro("in_flight", &ClientHandle::in_flight, "Submitted queries not yet polled.")
      .def_prop_ro("oldest", &ClientHandle::oldest,
                   "The ticket of the oldest query not yet polled; with none in flight, that of the next one.")
      .def_prop_ro("query_dtype", &ClientHandle::query_dtype,
                   "The type of a query, from the operator; bytes if it has none.")
      .def_prop_ro("answer_dtype", &ClientHandle::answer_dtype,
                   "The type of an answer; bytes if the operator has none.")
      .def("close", &ClientHandle::close,
           "Waits for queries in flight, drops them, and lets another client connect. A client of another process "
           "drops them at once.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Client"))
      .def(
          "__exit__", [](ClientHandle& client, const nb::args&) { client.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_client(nb::module_& module) {
  bind_client_statistics(module);
  bind_completions(module);
  bind_client_class(module);
  bind_engine(module);
}

}  // namespace headrace::python
