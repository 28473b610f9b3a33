#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "async_client_handle.hpp"
#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<AsyncClientHandle>(self)->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<AsyncClientHandle>(self)->clear();
  return 0;
}

std::array<PyType_Slot, 3> client_slots{PyType_Slot{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                        PyType_Slot{Py_tp_clear, reinterpret_cast<void*>(clear)},
                                        PyType_Slot{0, nullptr}};

}  // namespace

void bind_async_client(nb::module_& module) {
  nb::class_<AsyncClientHandle>(
      module, "AsyncClient", nb::type_slots(client_slots.data()), nb::is_weak_referenceable(),
      "A client of an engine for coroutines: made by Engine.connect_async(), or from the URL shm://NAME/MODEL for an "
      "engine that another process of this machine and user serves, like Client. All coroutines of one event loop may "
      "share it; the first call determines the loop. Answers have the operator's type. A cancelled call, as by "
      "asyncio.timeout(), does not get its answer and leaves the line of waiting calls.")
      .def(nb::new_([](const std::string& url, std::uint32_t slots, std::size_t waiting_max) {
             return std::make_unique<AsyncClientHandle>(connect_to(url, slots), waiting_max);
           }),
           "url"_a, nb::kw_only(), "slots"_a = 0, "waiting_max"_a = kWaitingMax,
           "Connects to a server's model, like Client and with the same errors. `waiting_max` calls may wait for free "
           "slots. Once the server has ended, unanswered queries come back as stopped.")
      .def("ask", &AsyncClientHandle::ask, "query"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask(self, query: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, deadline: "
                   "float | None = None) -> asyncio.Future[typing.Any]"),
           "Submits one query immediately, without being awaited, and returns the future of its answer. If "
           "Plan.in_flight_max "
           "queries are in flight, a copy waits in line for a free slot. Awaiting raises Error with the code of a "
           "query that failed. The call itself raises UsageError for a query of the wrong size and if no event loop or "
           "another one is running, and Error with the code full if the line is full.")
      .def("ask_many", &AsyncClientHandle::ask_many, "queries"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask_many(self, queries: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, "
                   "deadline: float | None = None) -> asyncio.Future["
                   "tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.uint8]]]"),
           "Like ask(), with all queries of an array, which must stay unchanged until the future is done: (answers, "
           "status), with a row and an entry each. A status is 0 for an answer; see Errc.of_status(). In line it "
           "counts as one call.")
      .def_prop_ro("query_dtype", &AsyncClientHandle::query_dtype, "Same as for Client.")
      .def_prop_ro("answer_dtype", &AsyncClientHandle::answer_dtype, "Same as for Client.")
      .def_prop_ro("in_flight", &AsyncClientHandle::in_flight, "Submitted queries that have not come back.")
      .def_prop_ro("waiting", &AsyncClientHandle::waiting, "Calls that wait for free slots.")
      .def("close", &AsyncClientHandle::close, nb::sig("def close(self) -> asyncio.Future[None]"),
           "Rejects new queries. The future is done once all queries are back; then another client may connect.")
      .def(
          "__aenter__", [](AsyncClientHandle& client) { return client.done(nb::find(client)); },
          nb::sig("def __aenter__(self) -> asyncio.Future[AsyncClient]"))
      .def(
          "__aexit__", [](AsyncClientHandle& client, const nb::args&) { return client.close(); },
          nb::sig("def __aexit__(self, *exception: object) -> asyncio.Future[None]"));
}

}  // namespace headrace::python
