#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"

/// Finds the devices of each kind.
namespace headrace::detail {

inline constexpr int kCpuDevicesMax = 64;

/// CPU device number `ordinal`, made on first use and never destroyed. 0 <= ordinal < kCpuDevicesMax.
[[nodiscard]] DeviceBackend& cpu_device(int ordinal);

/// The devices of one kind, by ordinal.
struct FoundDevices {
  std::vector<std::unique_ptr<DeviceBackend>> devices;
  std::string absence;  ///< Why there are none; empty when there are.
};

/// Finds the CUDA devices. Called once. Linked only if Headrace is built with CUDA.
[[nodiscard]] FoundDevices find_cuda_devices();

}  // namespace headrace::detail
