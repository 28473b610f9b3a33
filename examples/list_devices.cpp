// Prints the devices that Headrace can use on this machine, best first.

#include <exception>
#include <iostream>

#include "headrace/device/device.hpp"

int main() try {
  for (const headrace::Device device : headrace::Device::list()) {
    const headrace::DeviceProperties& properties = device.properties();
    std::cout << device.name() << ": " << properties.name << ", " << properties.multiprocessor_count
              << " multiprocessors, " << (properties.memory_bytes >> 30) << " GiB\n";
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "list_devices: " << error.what() << '\n';
  return 1;
}
