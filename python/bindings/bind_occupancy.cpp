#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "device/occupancy.hpp"
#include "headrace/serve/operator.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

void bind_occupancy_types(nb::module_& module) {
  nb::class_<GpuLimits>(module, "GpuLimits", "The limits of a GPU that determine how many blocks it holds.")
      .def_prop_ro("name", [](const GpuLimits& gpu) { return gpu.name; })
      .def_ro("compute_capability", &GpuLimits::compute_capability, "89 for 8.9.")
      .def_ro("multiprocessors", &GpuLimits::multiprocessors)
      .def_ro("threads", &GpuLimits::threads, "For each multiprocessor, like the next three.")
      .def_ro("blocks", &GpuLimits::blocks)
      .def_ro("registers", &GpuLimits::registers)
      .def_ro("shared_bytes", &GpuLimits::shared_bytes)
      .def_ro("shared_bytes_per_block", &GpuLimits::shared_bytes_per_block)
      .def("__repr__", [](const GpuLimits& gpu) {
        return fmt::format("<headrace.device.GpuLimits {}, {} multiprocessors>", gpu.name, gpu.multiprocessors);
      });
  nb::class_<KernelResources>(module, "KernelResources", "The resources of a multiprocessor that a kernel takes.")
      .def_ro("registers", &KernelResources::registers, "For each thread.")
      .def_ro("shared_bytes", &KernelResources::shared_bytes, "For each block, static.")
      .def_ro("local_bytes", &KernelResources::local_bytes, "For each thread, including spilled registers.")
      .def_ro("threads_max", &KernelResources::threads_max, "Most threads of a block.");
  nb::class_<Occupancy>(module, "Occupancy", "How many blocks a multiprocessor holds, and what limits them.")
      .def_ro("blocks", &Occupancy::blocks, "The least of the next four.")
      .def_ro("by_threads", &Occupancy::by_threads)
      .def_ro("by_blocks", &Occupancy::by_blocks)
      .def_ro("by_registers", &Occupancy::by_registers)
      .def_ro("by_shared", &Occupancy::by_shared)
      .def_prop_ro(
          "limited_by", [](const Occupancy& occupancy) { return occupancy.limited_by; },
          "\"threads\", \"blocks\", \"registers\" or \"shared memory\".");
}

void bind_calculation(nb::module_& module) {
  module.def(
      "known_gpus",
      [] {
        const auto all = known_gpus();
        return std::vector<GpuLimits>(all.begin(), all.end());
      },
      "The GPUs with known limits, by name.");
  module.def(
      "find_gpu", [](std::string_view name) { return find_gpu(name); }, "name"_a,
      "A GPU of the table: \"L40\", \"h100-sxm\". Raises UsageError that lists them.");
  module.def(
      "gpu_limits", [](const DeviceOrName& device) { return limits_of(to_device(device)); }, "device"_a,
      "The limits of a CUDA device that is present. Raises UsageError for a CPU device.");
  module.def(
      "occupancy",
      [](const GpuLimits& gpu, std::uint32_t registers, std::size_t shared_bytes, std::uint32_t block_threads) {
        return occupancy(gpu, {.registers = registers, .shared_bytes = shared_bytes}, block_threads);
      },
      "gpu"_a, "registers"_a, "shared_bytes"_a = 0, "block_threads"_a = 128,
      "Blocks that one multiprocessor holds, by the rules of NVIDIA's occupancy calculator.");
  module.def("resident_queries", &resident_queries, "multiprocessors"_a, "blocks_per_multiprocessor"_a,
             "blocks_per_query"_a, "Queries that can be resident at once: 142 x 10 / 32 = 44.");
  module.def(
      "combinations",
      [](std::uint32_t parallelism, std::uint32_t threads_max) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
        for (const auto& [threads, streams] : combinations(parallelism, threads_max)) {
          pairs.emplace_back(threads, streams);
        }
        return pairs;
      },
      "parallelism"_a, "threads_max"_a = 10,
      "(threads, streams of each) for each number of threads: 31 gives (1, 31), (2, 15), (3, 10), ...");
}

}  // namespace

void bind_occupancy(nb::module_& module) {
  bind_occupancy_types(module);
  bind_calculation(module);
  module.def(
      "kernel_resources",
      [](const DeviceOrName& device, const serve::Operator& op) {
        return to_device(device).kernel_resources(op.kernel);
      },
      "device"_a, "operator"_a,
      "The resources that the operator's kernel takes on that device; zeros on a CPU device.");
  module.def(
      "resident_blocks_max",
      [](const DeviceOrName& device, const serve::Operator& op, std::uint32_t block_threads) {
        return to_device(device).resident_blocks_max(op.kernel, block_threads == 0 ? op.shape.threads : block_threads);
      },
      "device"_a, "operator"_a, "block_threads"_a = 0,
      "Blocks of the operator's kernel that can be resident at once, as the device itself reports.");
}

}  // namespace headrace::python
