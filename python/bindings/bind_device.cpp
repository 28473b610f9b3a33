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
                         "What a device is and can do; None where the machine does not say.")
      .def_ro("name", &Properties::name, "As the vendor writes it.")
      .def_ro("driver", &Properties::driver, "Driver version, empty on a CPU device.")
      .def_ro("runtime", &Properties::runtime, "CUDA version that the driver speaks, empty on a CPU device.")
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
  nb::class_<MemoryInfo>(module, "MemoryInfo", "Memory of a device or of the host at one moment.")
      .def_ro("free_bytes", &MemoryInfo::free_bytes)
      .def_ro("total_bytes", &MemoryInfo::total_bytes);
  module.def("host_memory", &host_memory,
             "The host's memory that this process may use: the least of what the machine and each control group above "
             "the process allow and have left. Swap does not count.");
}

}  // namespace

void bind_device(nb::module_& module) {
  bind_properties(module);
  nb::enum_<DeviceKind>(module, "DeviceKind", "What drives a device.")
      .value("cpu", DeviceKind::cpu)
      .value("cuda", DeviceKind::cuda);
  nb::class_<Device>(module, "Device", "A device, as a value: \"cpu\", \"cpu:1\", \"cuda:0\".")
      .def_static("list", &Device::list, "The devices present, CUDA devices first. Never empty.")
      .def_static("parse", &Device::parse, "name"_a,
                  "The device of that name; \"best\" is the first of list(). Raises UsageError when there is none.")
      .def_static("cuda_absence", &Device::cuda_absence, "Why there are no CUDA devices; empty when there are.")
      .def_prop_ro("kind", &Device::kind)
      .def_prop_ro("ordinal", &Device::ordinal)
      .def_prop_ro("name", &Device::name, "\"cuda:0\"; parse() takes it back.")
      .def_prop_ro("properties", &Device::properties, nb::rv_policy::reference)
      .def("memory", &Device::memory, "Memory at this moment.")
      .def(
          "__eq__", [](Device a, Device b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](Device device) { return std::hash<std::string>{}(device.name()); })
      .def("__repr__", [](Device device) { return "headrace.Device.parse('" + device.name() + "')"; });
  module.def("parse_bytes", &parse_bytes, "text"_a,
             "The bytes that \"64KiB\", \"1.5 GiB\", \"128MB\" or \"4096\" stand for (KiB is 1024, KB is 1000). Raises "
             "UsageError when it is none of these.");
}

}  // namespace headrace::python
