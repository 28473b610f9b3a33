#pragma once

#include <nanobind/nanobind.h>

/// One function for each bind_<module>.cpp; module.cpp calls them all.
namespace headrace::python {

void bind_errors(nanobind::module_& module);
void bind_device(nanobind::module_& module);

}  // namespace headrace::python
