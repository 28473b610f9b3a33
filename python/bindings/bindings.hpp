#pragma once

#include <nanobind/nanobind.h>

/// One function for each bind_<module>.cpp. module.cpp calls them all, in order of dependence.
namespace headrace::python {

void bind_errors(nanobind::module_& module);
void bind_exit(nanobind::module_& module);
void bind_output(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_dense(nanobind::module_& module);
void bind_lookup(nanobind::module_& module);
void bind_measure(nanobind::module_& module);
void bind_copies(nanobind::module_& module);
void bind_index_pages(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_operators(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_async_client(nanobind::module_& module);
void bind_answer_into(nanobind::module_& module);
void bind_client(nanobind::module_& module);
void bind_ladder(nanobind::module_& module);
void bind_occupancy(nanobind::module_& module);
void bind_spmv(nanobind::module_& module);
void bind_topology(nanobind::module_& module);
void bind_links(nanobind::module_& module);
void bind_link_latency(nanobind::module_& module);
void bind_tuner(nanobind::module_& module);
void bind_span(nanobind::module_& module);
void bind_oversubscription(nanobind::module_& module);
void bind_advice(nanobind::module_& module);
void bind_ranks(nanobind::module_& module);
void bind_fdtd_options(nanobind::module_& module);
void bind_grid(nanobind::module_& module);
void bind_jacobi(nanobind::module_& module);
void bind_scan(nanobind::module_& module);
void bind_fetch(nanobind::module_& module);
void bind_ingest(nanobind::module_& module);
void bind_ingest_build(nanobind::module_& module);
void bind_ingest_measure(nanobind::module_& module);
void bind_frames(nanobind::module_& module);
void bind_receiver_options(nanobind::module_& module);
void bind_receiver(nanobind::module_& module);
void bind_reception(nanobind::module_& module);
void bind_messages(nanobind::module_& module);
void bind_wire(nanobind::module_& module);
/// Parts of bind_wire().
void bind_wire_models(nanobind::module_& module);
void bind_wire_statistics(nanobind::module_& module);
void bind_wire_client(nanobind::module_& module);

}  // namespace headrace::python
