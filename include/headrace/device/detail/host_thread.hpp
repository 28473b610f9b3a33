#pragma once

#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "headrace/device/topology.hpp"

namespace headrace {

/// The processor for host thread `number` of several that each feed a device: one near the device's NUMA node, a
/// different one for each number while there are any. Empty for a device that runs on the host's processors, whose
/// threads the system places.
[[nodiscard]] std::optional<Processor> processor_near(Device device, std::size_t number);

/// Starts a host thread that feeds a device, bound to processor_near(). If the system refuses to bind it (a container
/// without the right), it runs unbound, which is only slower. Throws std::system_error if the thread cannot be started.
template <class Work>
[[nodiscard]] std::thread start_thread_near(Device device, std::size_t number, Work work) {
  return std::thread([processor = processor_near(device, number), work = std::move(work)]() mutable {
    if (processor) static_cast<void>(bind_this_thread(*processor));
    work();
  });
}

}  // namespace headrace
