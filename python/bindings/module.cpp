#include "bindings.hpp"
#include "headrace/config.hpp"

NB_MODULE(_core, module) {
  module.attr("__version__") = headrace::kVersion;
  module.attr("built_with_cuda") = headrace::kBuiltWithCuda;
  headrace::python::bind_errors(module);
  headrace::python::bind_device(module);
}
