#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include "base/output_file.hpp"
#include "bindings.hpp"
#include "gil.hpp"
#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

/// Commits without the GIL. A signal handler that raises ends the wait for the reader of a FIFO.
void commit(OutputFile& file) {
  const GilRelease released;
  file.commit(raise_signals);
}

}  // namespace

void bind_output(nb::module_& module) {
  nb::class_<OutputFile>(
      module, "OutputFile",
      "A file that gets its name, or its new content, at commit(): completely or not at all. Symbolic links are "
      "followed. If the path is not a regular file, the bytes are written into it.")
      .def(nb::init<const std::filesystem::path&>(), "path"_a,
           nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def_prop_ro("staging", &OutputFile::staging, "A name under which the bytes can be written until commit().")
      .def("commit", &commit, "Gives the file its new content, durably.");
}

}  // namespace headrace::python
