#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/device/device.hpp"

namespace headrace {

/// How two devices are joined: the best way that their memory can be reached.
enum class PeerWay : std::uint8_t {
  same_device,
  same_memory,  ///< CPU devices: one address space.
  nvlink,
  pcie_board,        ///< One board.
  pcie_switch,       ///< Through PCIe switches alone.
  pcie_host_bridge,  ///< Through one host bridge.
  numa_node,         ///< Through several host bridges of one node.
  machine,           ///< Through the link between processors.
  unknown,           ///< No management library, or it does not say.
  none,              ///< Devices of two kinds.
};

/// "NVLink", "PCIe switch", "same memory", ...
[[nodiscard]] std::string_view to_string(PeerWay way) noexcept;

struct PeerConnection {
  PeerWay way = PeerWay::unknown;
  bool access = false;          ///< Kernels of the first can be let into the memory of the second.
  bool native_atomics = false;  ///< Its atomic operations on that memory are done there, exactly.
};

/// How `from` reaches `to`. Never throws for want of an answer.
[[nodiscard]] PeerConnection peer_connection(Device from, Device to);

/// Lets kernels and copies of one device into all memory of another (but spans, which have rights of their own), for as
/// long as this lives. Enabling maps every allocation of `to`, past and future, for `from`; see docs/links.md for what
/// that costs. Several scopes for one pair may live at once; the last ends it. Access that other code had enabled
/// before stays.
class PeerAccess {
 public:
  /// Throws DeviceError (Errc::not_supported) when `from` cannot reach `to`.
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
