#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/device/device.hpp"

namespace headrace {

/// How two devices are connected: the best path to each other's memory.
enum class PeerWay : std::uint8_t {
  same_device,
  same_memory,  ///< CPU devices: one address space.
  nvlink,
  pcie_board,        ///< One board.
  pcie_switch,       ///< Through PCIe switches only.
  pcie_host_bridge,  ///< Through one host bridge.
  numa_node,         ///< Through several host bridges of one node.
  machine,           ///< Through the link between processors.
  unknown,           ///< There is no management library, or it does not tell.
  none,              ///< Devices of different kinds.
};

/// "NVLink", "PCIe switch", "same memory", ...
[[nodiscard]] std::string_view to_string(PeerWay way) noexcept;

struct PeerConnection {
  PeerWay way = PeerWay::unknown;
  bool access = false;          ///< Kernels of the first can access the memory of the second.
  bool native_atomics = false;  ///< Atomic operations of the first on that memory execute there and are exact.
};

/// How `from` reaches `to`. Does not throw if that is unknown.
[[nodiscard]] PeerConnection peer_connection(Device from, Device to);

/// During its lifetime, kernels and copies of one device may access all memory of another (except spans, which have
/// their own rights). Enabling maps every allocation of `to`, past and future, for `from`; see docs/links.md for the
/// cost. Several objects for one pair may live at once; the last one disables access. Access that other code had
/// enabled before stays.
class PeerAccess {
 public:
  /// Throws DeviceError (Errc::not_supported) if `from` cannot reach `to`.
  PeerAccess(Device from, Device to);
  PeerAccess(PeerAccess&& other) noexcept;
  PeerAccess& operator=(PeerAccess&& other) noexcept;
  /// Work that uses the access must be done.
  ~PeerAccess();

 private:
  void reset() noexcept;

  detail::DeviceBackend* from_ = nullptr;
  detail::DeviceBackend* to_ = nullptr;
};

}  // namespace headrace
