#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace::testing {

/// All CUDA devices present. Without a GPU the list is empty, and the tests over it do not exist.
inline std::vector<Device> cuda_devices() {
  auto devices = Device::list();
  std::erase_if(devices, [](Device device) { return device.kind() != DeviceKind::cuda; });
  return devices;
}

inline std::string device_test_name(const ::testing::TestParamInfo<Device>& info) {
  return "cuda" + std::to_string(info.param.ordinal());
}

}  // namespace headrace::testing
