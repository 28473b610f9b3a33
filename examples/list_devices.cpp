// Prints the devices that Headrace can use here, best first.

#include <exception>
#include <iostream>

#include "headrace/base/bytes.hpp"
#include "headrace/device/device.hpp"

int main() try {
  for (const headrace::Device device : headrace::Device::list()) {
    const headrace::DeviceProperties& properties = device.properties();
    std::cout << device.name() << ": " << properties.name << ", " << properties.multiprocessor_count
              << " multiprocessors, " << headrace::format_bytes(properties.memory_bytes) << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "list_devices: " << error.what() << '\n';
  return 1;
}
