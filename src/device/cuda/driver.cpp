#include "device/cuda/driver.hpp"

#include <cuda_runtime_api.h>

namespace headrace::detail::cuda {

namespace {

constexpr unsigned kSinceCuda = 12000;  // the CUDA version of the entry points that cuda.h declares without a suffix

template <class Function>
void look_up(const char* name, Function& function) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &address, kSinceCuda, cudaEnableDefault, &found);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess && found == cudaDriverEntryPointSuccess) function = reinterpret_cast<Function>(address);
}

Driver look_up_all() noexcept {
  Driver driver;
  look_up("cuDeviceGet", driver.device_get);
  look_up("cuDeviceGetAttribute", driver.device_get_attribute);
  look_up("cuPointerGetAttributes", driver.pointer_get_attributes);
  look_up("cuMemGetAddressRange", driver.mem_get_address_range);
  look_up("cuMemGetAllocationGranularity", driver.mem_get_allocation_granularity);
  look_up("cuMemGetAllocationPropertiesFromHandle", driver.mem_get_allocation_properties);
  look_up("cuMemAddressReserve", driver.mem_address_reserve);
  look_up("cuMemAddressFree", driver.mem_address_free);
  look_up("cuMemCreate", driver.mem_create);
  look_up("cuMemRelease", driver.mem_release);
  look_up("cuMemMap", driver.mem_map);
  look_up("cuMemUnmap", driver.mem_unmap);
  look_up("cuMemSetAccess", driver.mem_set_access);
  look_up("cuMemExportToShareableHandle", driver.mem_export);
  look_up("cuMemImportFromShareableHandle", driver.mem_import);
  return driver;
}

}  // namespace

int Driver::attribute(CUdevice_attribute attribute, int ordinal, int fallback) const noexcept {
  CUdevice device = 0;
  int value = 0;
  if (device_get == nullptr || device_get_attribute == nullptr) return fallback;
  if (device_get(&device, ordinal) != CUDA_SUCCESS) return fallback;
  return device_get_attribute(&value, attribute, device) == CUDA_SUCCESS ? value : fallback;
}

bool Driver::has_virtual_memory() const noexcept {
  return mem_get_allocation_granularity != nullptr && mem_get_allocation_properties != nullptr &&
         mem_address_reserve != nullptr && mem_address_free != nullptr && mem_create != nullptr &&
         mem_release != nullptr && mem_map != nullptr && mem_unmap != nullptr && mem_set_access != nullptr &&
         mem_export != nullptr && mem_import != nullptr;
}

const Driver& driver() noexcept {
  static const Driver instance = look_up_all();
  return instance;
}

}  // namespace headrace::detail::cuda
