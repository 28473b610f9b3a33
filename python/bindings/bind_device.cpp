#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>

#include "bindings.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/detail/host_memory.hpp"
#include "headrace/device/device.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

void bind_properties(nb::module_& module) {
  using Properties = DeviceProperties;
  nb::class_<Properties>(module, "DeviceProperties",
                         "The properties of a device; None if the machine does not report one.")
      .def_ro("name", &Properties::name, "The vendor's name for it.")
      .def_ro("driver", &Properties::driver, "Driver version, empty on a CPU device.")
      .def_ro("runtime", &Properties::runtime, "CUDA version that the driver supports, empty on a CPU device.")
      .def_ro("memory_bytes", &Properties::memory_bytes)
      .def_ro("multiprocessor_count", &Properties::multiprocessor_count, "Multiprocessors; cores of a CPU device.")
      .def_ro("threads_per_multiprocessor", &Properties::threads_per_multiprocessor)
      .def_ro("blocks_per_multiprocessor", &Properties::blocks_per_multiprocessor)
      .def_ro("registers_per_multiprocessor", &Properties::registers_per_multiprocessor)
      .def_ro("shared_bytes_per_multiprocessor", &Properties::shared_bytes_per_multiprocessor)
      .def_ro("compute_capability", &Properties::compute_capability, "90 for 9.0; 0 on a CPU device.")
      .def_ro("clock_mhz", &Properties::clock_mhz, "Highest clock.")
      .def_ro("link_generation", &Properties::link_generation)
      .def_ro("link_width", &Properties::link_width, "Lanes of the link to the host.")
      .def_ro("numa_node", &Properties::numa_node)
      .def_ro("copy_engine_count", &Properties::copy_engine_count)
      .def_ro("managed_memory", &Properties::managed_memory)
      .def_ro("concurrent_managed_access", &Properties::concurrent_managed_access)
      .def_ro("virtual_memory_management", &Properties::virtual_memory_management)
      .def_ro("host_native_atomics", &Properties::host_native_atomics)
      .def_ro("pageable_memory_access", &Properties::pageable_memory_access);
  nb::class_<MemoryInfo>(module, "MemoryInfo", "Free and total memory of a device or of the host at one moment.")
      .def_ro("free_bytes", &MemoryInfo::free_bytes)
      .def_ro("total_bytes", &MemoryInfo::total_bytes);
  module.def("host_memory", &host_memory,
             "The host memory that this process may use: the least of what the machine and each control group above "
             "the process allow and have left. Swap does not count.");
}

}  // namespace

void bind_device(nb::module_& module) {
  bind_properties(module);
  nb::enum_<DeviceKind>(module, "DeviceKind", "The kind of driver behind a device.")
      .value("cpu", DeviceKind::cpu)
      .value("cuda", DeviceKind::cuda);
  nb::class_<Device>(module, "Device", "A device, as a value: \"cpu\", \"cpu:1\", \"cuda:0\".")
      .def_static("list", &Device::list, "The devices present, CUDA devices first. Never empty.")
      .def_static("parse", &Device::parse, "name"_a,
                  "The device of that name; \"best\" is the first of list(). Raises UsageError if there is none.")
      .def_static("cuda_absence", &Device::cuda_absence, "Why there are no CUDA devices; empty if there are some.")
      .def_prop_ro("kind", &Device::kind)
      .def_prop_ro("ordinal", &Device::ordinal)
      .def_prop_ro("name", &Device::name, "The device's name, such as \"cuda:0\"; parse() accepts it.")
      .def_prop_ro("properties", &Device::properties, nb::rv_policy::reference)
      .def("memory", &Device::memory, "Memory at this moment.")
      .def(
          "__eq__", [](Device a, Device b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](Device device) { return std::hash<std::string>{}(device.name()); })
      .def("__repr__", [](Device device) { return "headrace.Device.parse('" + device.name() + "')"; });
  module.def("parse_bytes", &parse_bytes, "text"_a,
             "The number of bytes in \"64KiB\", \"1.5 GiB\", \"128MB\" or \"4096\" (KiB is 1024, KB is 1000). Raises "
             "UsageError for other text.");
}

}  // namespace headrace::python
