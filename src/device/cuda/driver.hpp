#pragma once

#include <cuda.h>

/// The driver's entry points that the runtime has no equal of. They are looked up at run time, never linked, so that a
/// library built with CUDA loads where there is no libcuda.
namespace headrace::detail::cuda {

struct Driver {
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes = nullptr;

  // Virtual memory management (CUDA Driver API, section of that name).
  decltype(&::cuMemGetAllocationGranularity) mem_get_allocation_granularity = nullptr;
  decltype(&::cuMemGetAllocationPropertiesFromHandle) mem_get_allocation_properties = nullptr;
  decltype(&::cuMemAddressReserve) mem_address_reserve = nullptr;
  decltype(&::cuMemAddressFree) mem_address_free = nullptr;
  decltype(&::cuMemCreate) mem_create = nullptr;
  decltype(&::cuMemRelease) mem_release = nullptr;
  decltype(&::cuMemMap) mem_map = nullptr;
  decltype(&::cuMemUnmap) mem_unmap = nullptr;
  decltype(&::cuMemSetAccess) mem_set_access = nullptr;
  decltype(&::cuMemExportToShareableHandle) mem_export = nullptr;
  decltype(&::cuMemImportFromShareableHandle) mem_import = nullptr;

  /// Whether all functions of virtual memory management are there.
  [[nodiscard]] bool has_virtual_memory() const noexcept;

  /// An attribute of a device, or `fallback` where the driver does not know it.
  [[nodiscard]] int attribute(CUdevice_attribute attribute, int ordinal, int fallback) const noexcept;
};

/// Members are null where the driver lacks the function.
[[nodiscard]] const Driver& driver() noexcept;

}  // namespace headrace::detail::cuda
