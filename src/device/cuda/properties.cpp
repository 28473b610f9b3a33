#include "device/cuda/properties.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <fstream>

#include "device/cuda/driver.hpp"
#include "device/cuda/error.hpp"

namespace headrace::detail::cuda {

namespace {

/// An attribute, or empty if this runtime and driver do not know it.
std::optional<int> attribute(cudaDeviceAttr which, int ordinal) noexcept {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess) return value;
  static_cast<void>(cudaGetLastError());
  return std::nullopt;
}

bool has(cudaDeviceAttr which, int ordinal) noexcept { return attribute(which, ordinal).value_or(0) != 0; }

/// CUDA's answer, else the kernel's. Both are -1 on a machine with a single node.
std::optional<int> numa_node(int ordinal, std::string pci) {
  const auto near = attribute(cudaDevAttrHostNumaId, ordinal);
  if (near && *near >= 0) return near;
  for (char& c : pci) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/numa_node", pci));
  int node = -1;
  if (file >> node && node >= 0) return node;
  return std::nullopt;
}

std::string cuda_version_of_driver() {
  int version = 0;
  or_throw(cudaDriverGetVersion(&version), "reading the driver's CUDA version");
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

PciId pci_id(int ordinal) noexcept {
  PciId text{};
  if (cudaDeviceGetPCIBusId(text.data(), text.size(), ordinal) == cudaSuccess) return text;
  static_cast<void>(cudaGetLastError());
  return {};
}

DeviceProperties read_properties(int ordinal, const Nvml& nvml) {
  cudaDeviceProp device{};
  or_throw(cudaGetDeviceProperties(&device, ordinal), fmt::format("reading the properties of cuda:{}", ordinal));
  const std::string pci = pci_id(ordinal).data();
  const auto link = nvml.link(pci.c_str());
  DeviceProperties properties;
  properties.name = device.name;
  properties.driver = nvml.driver_version();
  properties.runtime = cuda_version_of_driver();
  properties.memory_bytes = device.totalGlobalMem;
  properties.multiprocessor_count = device.multiProcessorCount;
  properties.threads_per_multiprocessor = device.maxThreadsPerMultiProcessor;
  properties.blocks_per_multiprocessor = device.maxBlocksPerMultiProcessor;
  properties.registers_per_multiprocessor = static_cast<std::size_t>(device.regsPerMultiprocessor);
  properties.shared_bytes_per_multiprocessor = device.sharedMemPerMultiprocessor;
  properties.compute_capability = device.major * 10 + device.minor;
  if (const auto khz = attribute(cudaDevAttrClockRate, ordinal); khz && *khz > 0) properties.clock_mhz = *khz / 1000;
  properties.link_generation = link.generation;
  properties.link_width = link.width;
  properties.numa_node = numa_node(ordinal, pci);
  properties.copy_engine_count = device.asyncEngineCount;
  properties.managed_memory = device.managedMemory != 0;
  properties.concurrent_managed_access = device.concurrentManagedAccess != 0;
  properties.virtual_memory_management =
      driver().attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, ordinal, 0) != 0;
  properties.host_native_atomics = has(cudaDevAttrHostNativeAtomicSupported, ordinal);
  properties.pageable_memory_access = has(cudaDevAttrPageableMemoryAccess, ordinal);
  properties.listed_copies = true;
  return properties;
}

}  // namespace headrace::detail::cuda
