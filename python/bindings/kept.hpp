#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace headrace::python {

/// An object that C++ keeps, whichever thread lets go of it last. It stays where the interpreter has ended by then.
[[nodiscard]] std::shared_ptr<const void> keep(nanobind::object object);

}  // namespace headrace::python
