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
      "A coroutine's way into an engine: made by Engine.connect_async(), or of the URL shm://NAME/MODEL for one that "
      "another process of this machine and user serves, as Client is. All coroutines of one event loop may share it; "
      "the first call says which loop it belongs to. Answers have the operator's type. A call that is cancelled, as "
      "asyncio.timeout() does, is not told of its answer, and does not go on waiting in line.")
      .def(nb::new_([](const std::string& url, std::uint32_t slots, std::size_t waiting_max) {
             return std::make_unique<AsyncClientHandle>(connect_to(url, slots), waiting_max);
           }),
           "url"_a, nb::kw_only(), "slots"_a = 0, "waiting_max"_a = kWaitingMax,
           "Connects to a server's model, as Client does, and with the same errors. `waiting_max` calls may wait for "
           "free slots. Once the server has ended, what it has not answered comes back as stopped.")
      .def("ask", &AsyncClientHandle::ask, "query"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask(self, query: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, deadline: "
                   "float | None = None) -> asyncio.Future[typing.Any]"),
           "Submits one query at once, without being awaited, and gives the future of its answer. Where Plan.slots "
           "queries are in flight, a copy waits in line for a free slot. Awaiting raises Error with the code that the "
           "query came back with. The call itself raises UsageError for a query that does not fit and where no event "
           "loop or another one runs, and Error with the code full when the line is.")
      .def("ask_many", &AsyncClientHandle::ask_many, "queries"_a, nb::kw_only(), "deadline"_a = nb::none(),
           nb::sig("def ask_many(self, queries: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer, *, "
                   "deadline: float | None = None) -> asyncio.Future["
                   "tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.uint8]]]"),
           "As ask(), with all queries of an array, which stays unchanged until the future is done: (answers, status), "
           "a row and an entry each. A status is 0 for an answer; see Errc.of_status(). In line it counts as one call.")
      .def_prop_ro("query_dtype", &AsyncClientHandle::query_dtype, "As Client has it.")
      .def_prop_ro("answer_dtype", &AsyncClientHandle::answer_dtype, "As Client has it.")
      .def_prop_ro("in_flight", &AsyncClientHandle::in_flight, "Queries submitted that have not come back.")
      .def_prop_ro("waiting", &AsyncClientHandle::waiting, "Calls that wait for free slots.")
      .def("close", &AsyncClientHandle::close, nb::sig("def close(self) -> asyncio.Future[None]"),
           "Refuses new queries. The future is done when all are back; then another client may connect.")
      .def(
          "__aenter__", [](AsyncClientHandle& client) { return client.done(nb::find(client)); },
          nb::sig("def __aenter__(self) -> asyncio.Future[AsyncClient]"))
      .def(
          "__aexit__", [](AsyncClientHandle& client, const nb::args&) { return client.close(); },
          nb::sig("def __aexit__(self, *exception: object) -> asyncio.Future[None]"));
}

}  // namespace headrace::python
