#pragma once

#include "device/cuda/nvml.hpp"
#include "headrace/device/device.hpp"

namespace headrace::detail::cuda {

/// Everything that CUDA, NVML and the kernel say about a device. Makes no context. Throws DeviceError.
[[nodiscard]] DeviceProperties read_properties(int ordinal, const Nvml& nvml);

}  // namespace headrace::detail::cuda
