#pragma once

#include <cuda.h>

/// Driver entry points without an equivalent in the runtime. They are looked up at run time and never linked, so that a
/// library built with CUDA also loads without libcuda.
namespace headrace::detail::cuda {

struct Driver {
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes = nullptr;
  decltype(&::cuMemGetAddressRange) mem_get_address_range = nullptr;

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

  /// Whether the driver has all functions of virtual memory management.
  [[nodiscard]] bool has_virtual_memory() const noexcept;

  /// An attribute of a device, or `fallback` if the driver does not know it.
  [[nodiscard]] int attribute(CUdevice_attribute attribute, int ordinal, int fallback) const noexcept;
};

/// A member is null if the driver lacks the function.
[[nodiscard]] const Driver& driver() noexcept;

}  // namespace headrace::detail::cuda
