#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#include "device/cuda/device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/properties.hpp"
#include "device/registry.hpp"

namespace headrace::detail {

namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Why CUDA found no devices, and what to do about it.
std::string explain(cudaError_t status) {
  int driver_version = 0;
  int runtime_version = 0;
  static_cast<void>(cudaDriverGetVersion(&driver_version));
  static_cast<void>(cudaRuntimeGetVersion(&runtime_version));
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    return fmt::format("no device (the driver supports CUDA {} but shows no GPU to this process)",
                       version_text(driver_version));
  }
  if (driver_version == 0) return "no driver (libcuda.so.1 is not installed, or cannot be loaded)";
  if (driver_version / 1000 < runtime_version / 1000) {
    return fmt::format(
        "the driver is too old: it supports CUDA {}, but this build needs {}.0 or later; update the driver",
        version_text(driver_version), runtime_version / 1000);
  }
  return fmt::format("the driver reports: {} (CUDA code {})", cudaGetErrorString(status), static_cast<int>(status));
}

}  // namespace

FoundDevices find_cuda_devices() {
  cuda::note_first_use();
  // Loading a kernel's code at its first launch waits for the device, which takes forever while a resident kernel runs.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  FoundDevices found;
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    found.absence = explain(status);
    return found;
  }
  const cuda::Nvml nvml;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    try {
      found.devices.push_back(std::make_unique<cuda::CudaDevice>(ordinal, cuda::read_properties(ordinal, nvml)));
    } catch (const Exception& failure) {
      // Leave out later devices as well, because a device's number here must equal its number in CUDA.
      if (found.devices.empty()) found.absence = failure.what();
      break;
    }
  }
  return found;
}

}  // namespace headrace::detail
