#include "device/cuda/driver.hpp"

#include <cuda_runtime_api.h>

namespace headrace::detail::cuda {

namespace {

constexpr unsigned kSinceCuda = 12000;  // the version of each entry point that cuda.h declares under its plain name

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

const Driver& driver() noexcept {
  static const Driver instance = look_up_all();
  return instance;
}

}  // namespace headrace::detail::cuda
