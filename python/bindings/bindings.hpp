#pragma once

#include <nanobind/nanobind.h>

/// One function for each bind_<module>.cpp; module.cpp calls them all, in order of dependence.
namespace headrace::python {

void bind_errors(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_measure(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_operators(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_client(nanobind::module_& module);
void bind_ladder(nanobind::module_& module);

}  // namespace headrace::python
