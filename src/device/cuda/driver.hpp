#pragma once

#include <cuda.h>

/// The driver's entry points that the runtime has no equal of. They are looked up at run time, never linked, so that a
/// library built with CUDA loads where there is no libcuda.
namespace headrace::detail::cuda {

struct Driver {
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes = nullptr;

  /// An attribute of a device, or `fallback` where the driver does not know it.
  [[nodiscard]] int attribute(CUdevice_attribute attribute, int ordinal, int fallback) const noexcept;
};

/// Members are null where the driver lacks the function.
[[nodiscard]] const Driver& driver() noexcept;

}  // namespace headrace::detail::cuda
