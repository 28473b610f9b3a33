#include "headrace/device/detail/foreign_memory.hpp"

#include "device/backend.hpp"

namespace headrace {

std::vector<Device> shareable_devices() {
  std::vector<Device> devices = Device::list();
  std::erase_if(devices, [](Device device) { return device.kind() != DeviceKind::cuda; });
  return devices;
}

Result<std::unique_ptr<ForeignMemory>> open_foreign_memory(Device device, std::span<const std::byte> handle) noexcept {
  return device.backend().open_foreign_memory(handle);
}

}  // namespace headrace
