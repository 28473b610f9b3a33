#include "base/exception_memory.hpp"
#include "bindings.hpp"
#include "headrace/config.hpp"

namespace {

/// Whether nanobind reports objects that are alive when Python ends. The report helps to develop bindings; users would
/// only learn that threads, caches or other packages still held an object.
#ifdef NDEBUG
constexpr bool kLeakWarnings = false;
#else
constexpr bool kLeakWarnings = true;
#endif

}  // namespace

NB_MODULE(_core, module) {
  headrace::reserve_exception_memory();  // of the main thread, which waits for servers and reads their counters
  nanobind::set_leak_warnings(kLeakWarnings);
  module.attr("version") = headrace::kVersion;
  module.attr("built_with_cuda") = headrace::kBuiltWithCuda;
  module.attr("built_with_fetch") = headrace::kBuiltWithFetch;
  module.attr("built_with_wire") = headrace::kBuiltWithWire;
  module.attr("built_with_grpc") = headrace::kBuiltWithGrpc;
  module.attr("built_with_tls") = headrace::kBuiltWithTls;
  module.attr("built_with_xdp") = headrace::kBuiltWithXdp;
  headrace::python::bind_errors(module);
  headrace::python::bind_exit(module);
  headrace::python::bind_output(module);
  headrace::python::bind_device(module);
  headrace::python::bind_measure(module);
  headrace::python::bind_copies(module);
  headrace::python::bind_index_pages(module);
  headrace::python::bind_index(module);
  headrace::python::bind_operators(module);
  headrace::python::bind_dense(module);
  headrace::python::bind_plan(module);
  headrace::python::bind_async_client(module);
  headrace::python::bind_client(module);
  headrace::python::bind_answer_into(module);
  headrace::python::bind_ladder(module);
  headrace::python::bind_occupancy(module);
  headrace::python::bind_spmv(module);
  headrace::python::bind_topology(module);
  headrace::python::bind_links(module);
  headrace::python::bind_link_latency(module);
  headrace::python::bind_tuner(module);
  headrace::python::bind_span(module);
  headrace::python::bind_lookup(module);
  headrace::python::bind_oversubscription(module);
  headrace::python::bind_advice(module);
  headrace::python::bind_ranks(module);
  headrace::python::bind_fdtd_options(module);
  headrace::python::bind_grid(module);
  headrace::python::bind_jacobi(module);
  headrace::python::bind_scan(module);
  headrace::python::bind_ingest(module);
  headrace::python::bind_ingest_build(module);
  headrace::python::bind_ingest_measure(module);
  headrace::python::bind_frames(module);
  headrace::python::bind_receiver_options(module);
  headrace::python::bind_receiver(module);
  headrace::python::bind_reception(module);
  headrace::python::bind_messages(module);
  headrace::python::bind_wire(module);
  if constexpr (headrace::kBuiltWithWire) headrace::python::bind_wire_client(module);
  if constexpr (headrace::kBuiltWithFetch) headrace::python::bind_fetch(module);
}
