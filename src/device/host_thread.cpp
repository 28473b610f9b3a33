#include "headrace/device/detail/host_thread.hpp"

#include <vector>

namespace headrace {

std::optional<Processor> processor_near(Device device, std::size_t number) {
  if (device.properties().host_cores) return {};
  const std::vector<Processor> order = Topology::machine().by_cache_distance(device.properties().numa_node);
  return order[number % order.size()];
}

}  // namespace headrace
