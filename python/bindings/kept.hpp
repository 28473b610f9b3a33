#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace headrace::python {

/// Keeps an object for C++, whichever thread releases it last. If the interpreter has ended by then, the object is
/// leaked.
[[nodiscard]] std::shared_ptr<const void> keep(nanobind::object object);

}  // namespace headrace::python
