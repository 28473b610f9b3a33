#include "bindings.hpp"
#include "headrace/config.hpp"

NB_MODULE(_core, module) {
  module.attr("version") = headrace::kVersion;
  module.attr("built_with_cuda") = headrace::kBuiltWithCuda;
  headrace::python::bind_errors(module);
  headrace::python::bind_device(module);
  headrace::python::bind_measure(module);
  headrace::python::bind_index(module);
  headrace::python::bind_operators(module);
  headrace::python::bind_plan(module);
  headrace::python::bind_client(module);
  headrace::python::bind_ladder(module);
}
