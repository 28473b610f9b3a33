#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "headrace/grid/mpi.hpp"

namespace nb = nanobind;

NB_MODULE(_mpi, module) {
  nb::module_::import_("headrace._core");  // defines the types of ranks and of errors
  module.def("join", &headrace::grid::join_mpi, nb::call_guard<nb::gil_scoped_release>(),
             "The processes that mpirun or another launcher started together.");
}
