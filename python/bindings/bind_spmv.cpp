#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "bindings.hpp"
#include "convert.hpp"
#include "csr_handle.hpp"
#include "gil.hpp"
#include "operators/spmv/roofs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using operators::CsrPartUse;
using Devices = std::variant<DeviceOrName, std::vector<DeviceOrName>>;

std::vector<Device> to_devices(const Devices& given) {
  std::vector<Device> devices;
  if (const auto* one = std::get_if<DeviceOrName>(&given)) {
    devices.push_back(to_device(*one));
  } else {
    for (const DeviceOrName& device : std::get<std::vector<DeviceOrName>>(given)) devices.push_back(to_device(device));
  }
  return devices;
}

/// Takes the arrays of a SciPy matrix or array in any sparse format.
CsrHandle from_scipy(const Devices& devices, const nb::object& matrix, const std::string& reads) {
  if (!nb::hasattr(matrix, "tocsr")) {
    throw nb::type_error(
        fmt::format("matrix must be a sparse matrix or array of SciPy, not {}", nb::repr(matrix.type()).c_str())
            .c_str());
  }
  const nb::object csr = matrix.attr("tocsr")();
  const auto shape = nb::cast<std::pair<std::uint64_t, std::uint64_t>>(csr.attr("shape"));
  return {to_devices(devices),
          {nb::cast<AnyArray>(csr.attr("indptr")), nb::cast<AnyArray>(csr.attr("indices")),
           nb::cast<AnyArray>(csr.attr("data")), shape.first, shape.second},
          operators::parse_vector_reads(reads)};
}

void bind_spmv_part(nb::module_& module) {
  nb::class_<CsrPartUse>(module, "CsrPart", "The part of a sparse matrix on one device.")
      .def_ro("device", &CsrPartUse::device)
      .def_ro("first_row", &CsrPartUse::first_row)
      .def_ro("row_count", &CsrPartUse::row_count)
      .def_ro("entry_count", &CsrPartUse::entry_count)
      .def_ro("bytes", &CsrPartUse::bytes, "Bytes that each multiplication reads besides the vectors.")
      .def_ro("remote_read_count", &CsrPartUse::remote_read_count,
              "Entries whose element of x is on a page of another device.")
      .def_ro("remote_bytes", &CsrPartUse::remote_bytes,
              "Bytes that its blocks read over links if x is read in place: 32 for each sector, once a block.")
      .def_ro("copied_count", &CsrPartUse::copied_count,
              "Elements of x that every multiplication copies to the device; 0 if x is read in place.")
      .def("__repr__", [](const CsrPartUse& part) {
        return fmt::format("CsrPart(device={}, first_row={}, row_count={}, entry_count={})", part.device.name(),
                           part.first_row, part.row_count, part.entry_count);
      });
}

}  // namespace

void bind_spmv(nb::module_& module) {
  bind_spmv_part(module);
  module.def(
      "gather",
      [](const DeviceOrName& reader, const DeviceOrName& owner) {
        const Device from = to_device(owner);
        const Device to = to_device(reader);
        const GilRelease released;
        return operators::measure_gather(to, from);
      },
      "reader"_a, "owner"_a,
      "Bytes per second at which a kernel on `reader` copies data on pages of `owner` to its own memory.");
  nb::class_<CsrHandle>(
      module, "CsrMatrix",
      "A sparse matrix in compressed rows over one or several devices; vectors are one range over all of them.")
      .def(
          "__init__",
          [](CsrHandle* self, const Devices& devices, AnyArray indptr, AnyArray indices, AnyArray data,
             std::pair<std::uint64_t, std::uint64_t> shape, const std::string& reads) {
            new (self) CsrHandle(to_devices(devices),
                                 {std::move(indptr), std::move(indices), std::move(data), shape.first, shape.second},
                                 operators::parse_vector_reads(reads));
          },
          "devices"_a, "indptr"_a, "indices"_a, "data"_a, "shape"_a, nb::kw_only(), "reads"_a = "automatic",
          nb::sig(
              "def __init__(self, devices: Device | str | Sequence[Device | str], indptr: numpy.typing.NDArray[Any], "
              "indices: numpy.typing.NDArray[Any], data: numpy.typing.NDArray[Any], shape: tuple[int, int], *, "
              "reads: str = ...) -> None"),
          "Copies a matrix to its devices, with rows cut by equal numbers of entries. `indptr` and `indices` are int32 "
          "or int64, `data` is float32 or float64. The part of x on other devices is read \"in-place\" or \"copied\" "
          "first; \"automatic\" takes the one that moves less. Raises UsageError that names the first wrong row or "
          "entry.")
      .def_static("from_scipy", &from_scipy, "devices"_a, "matrix"_a, nb::kw_only(), "reads"_a = "automatic",
                  "The same from a sparse matrix or array of SciPy, which converts formats other than CSR.")
      .def_prop_ro("shape", [](const CsrHandle& self) { return std::pair(self.row_count(), self.column_count()); })
      .def_prop_ro("nnz", &CsrHandle::entry_count, "Number of entries, whether zero or not.")
      .def_prop_ro("dtype", &CsrHandle::dtype, "\"float32\" or \"float64\".")
      .def_prop_ro("parts", &CsrHandle::parts, "The part of each device.")
      .def("multiply", &CsrHandle::multiply, "x"_a, "times"_a = 1,
           nb::sig("def multiply(self, x: numpy.typing.NDArray[Any], times: int = ...) -> numpy.typing.NDArray[Any]"),
           "A x, or A^times x for a square matrix, as a new array; x stays on the devices in between.")
      .def(
          "__matmul__", [](CsrHandle& self, const AnyArray& x) { return self.multiply(x, 1); }, "x"_a,
          nb::sig("def __matmul__(self, x: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[Any]"))
      .def("time", &CsrHandle::time, "samples"_a = 5, "repeats"_a = 20,
           "Seconds of one multiplication with the x that is on the devices, measured `samples` times over `repeats` "
           "in a row, without copies from or to the host.")
      .def("__repr__", [](const CsrHandle& self) {
        return fmt::format("CsrMatrix({} x {}, {} entries, {}, {} device{})", self.row_count(), self.column_count(),
                           self.entry_count(), self.dtype(), self.parts().size(), self.parts().size() == 1 ? "" : "s");
      });
}

}  // namespace headrace::python
