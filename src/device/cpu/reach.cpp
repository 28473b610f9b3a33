#include "device/cpu/device.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

/// Links of CPU devices: they share one address space with the host, so nothing has to be locked or enabled.
namespace headrace::detail {

namespace {

constexpr const char* kNoManagement = "a CPU device has no management library";

}  // namespace

Status CpuDevice::register_host(void* /*data*/, std::size_t /*bytes*/) noexcept { return {}; }
void CpuDevice::unregister_host(void* /*data*/) noexcept {}

PeerConnection CpuDevice::connection(const DeviceBackend& peer) const noexcept {
  const PeerWay way = peer.ordinal() == ordinal_ ? PeerWay::same_device : PeerWay::same_memory;
  return {.way = way, .access = true, .native_atomics = true};
}

Status CpuDevice::enable_peer(DeviceBackend& /*peer*/) noexcept { return {}; }
void CpuDevice::disable_peer(DeviceBackend& /*peer*/) noexcept {}

DeviceHealth CpuDevice::health() const {
  DeviceHealth health;
  health.absence = kNoManagement;
  try {
    for (const Processor& one : Topology::machine().processors()) health.near_processors.push_back(one.os_index);
  } catch (const SystemError&) {
    health.near_processors.clear();  // unknown
  }
  return health;
}

LinkCounters CpuDevice::link_counters() const { return {.absence = kNoManagement}; }

}  // namespace headrace::detail
