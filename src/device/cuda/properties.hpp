#pragma once

#include <array>

#include "device/cuda/nvml.hpp"
#include "headrace/device/device.hpp"

namespace headrace::detail::cuda {

/// E.g. "0000:3B:00.0", in the form that NVML takes; empty if CUDA does not report it. Null-terminated.
using PciId = std::array<char, 32>;
[[nodiscard]] PciId pci_id(int ordinal) noexcept;

/// Everything that CUDA, NVML and the kernel report about a device. Creates no context. Throws DeviceError.
[[nodiscard]] DeviceProperties read_properties(int ordinal, const Nvml& nvml);

}  // namespace headrace::detail::cuda
