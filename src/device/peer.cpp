#include "headrace/device/detail/peer.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/names.hpp"
#include "device/backend.hpp"
#include "headrace/device/detail/health.hpp"

namespace headrace {

namespace {

constexpr auto kWays = names_of<PeerWay>("a way between devices", {{PeerWay::same_device, "same device"},
                                                                   {PeerWay::same_memory, "same memory"},
                                                                   {PeerWay::nvlink, "NVLink"},
                                                                   {PeerWay::pcie_board, "one board"},
                                                                   {PeerWay::pcie_switch, "PCIe switch"},
                                                                   {PeerWay::pcie_host_bridge, "PCIe host bridge"},
                                                                   {PeerWay::numa_node, "within NUMA node"},
                                                                   {PeerWay::machine, "other node"},
                                                                   {PeerWay::unknown, "unknown"},
                                                                   {PeerWay::none, "none"}});

}  // namespace

std::string_view to_string(PeerWay way) noexcept { return kWays.of(way); }

PeerConnection peer_connection(Device from, Device to) {
  if (from.kind() != to.kind()) return {.way = PeerWay::none};
  return from.backend().connection(to.backend());
}

PeerAccess::PeerAccess(Device from, Device to) : from_(&from.backend()), to_(&to.backend()) {
  if (from.kind() != to.kind()) {
    throw DeviceError(
        Errc::not_supported,
        fmt::format("{} cannot access the memory of {}: the devices are of different kinds", from.name(), to.name()));
  }
  from_->enable_peer(*to_).or_throw(fmt::format("giving {} access to the memory of {}", from.name(), to.name()));
}

PeerAccess::PeerAccess(PeerAccess&& other) noexcept
    : from_(std::exchange(other.from_, nullptr)), to_(std::exchange(other.to_, nullptr)) {}

PeerAccess& PeerAccess::operator=(PeerAccess&& other) noexcept {
  if (this != &other) {
    reset();
    from_ = std::exchange(other.from_, nullptr);
    to_ = std::exchange(other.to_, nullptr);
  }
  return *this;
}

PeerAccess::~PeerAccess() { reset(); }

void PeerAccess::reset() noexcept {
  if (from_ != nullptr) from_->disable_peer(*to_);
  from_ = nullptr;
}

DeviceHealth read_health(Device device) { return device.backend().health(); }
LinkCounters read_link_counters(Device device) { return device.backend().link_counters(); }

}  // namespace headrace
