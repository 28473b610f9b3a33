#include <fmt/format.h>

#include <array>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/measure/links.hpp"

namespace headrace::measure {

namespace {

constexpr std::array kAllMeans{LinkMeans::engine, LinkMeans::kernel};

bool between_devices(LinkPath path) noexcept {
  return path == LinkPath::from_peer || path == LinkPath::to_peer || path == LinkPath::both_peers;
}

std::vector<LinkRoute> peer_routes(Device device, Device peer) {
  std::vector<LinkRoute> routes;
  for (const LinkPath path : {LinkPath::from_peer, LinkPath::to_peer, LinkPath::both_peers}) {
    for (const LinkMeans means : kAllMeans) {
      for (const LinkMemory memory : {LinkMemory::device, LinkMemory::span}) {
        routes.push_back({.device = device, .path = path, .memory = memory, .means = means, .peer = peer});
      }
    }
  }
  return routes;
}

std::string why_not_between(const LinkRoute& route) {
  if (!route.peer) throw UsageError(fmt::format("path '{}' needs two devices", to_string(route.path)));
  if (*route.peer == route.device) throw UsageError(fmt::format("{} cannot be its own peer", route.device.name()));
  if (route.peer->kind() != route.device.kind()) {
    throw UsageError(
        fmt::format("{} and {} cannot be peers: they are of different kinds", route.device.name(), route.peer->name()));
  }
  if (route.memory != LinkMemory::device && route.memory != LinkMemory::span) {
    return "between devices, only device memory and spans can be measured";
  }
  const bool access = peer_connection(route.device, *route.peer).access;
  if (route.peer_access && !access) {
    return fmt::format("{} cannot reach the memory of {}", route.device.name(), route.peer->name());
  }
  if (!route.peer_access && (route.means == LinkMeans::kernel || route.memory == LinkMemory::span)) {
    return "without peer access, only copies of device memory can be measured";
  }
  return {};
}

}  // namespace

std::vector<LinkRoute> link_routes(Device device, std::optional<Device> peer) {
  if (peer) return peer_routes(device, *peer);
  std::vector<LinkRoute> routes;
  for (const LinkPath path : {LinkPath::to_device, LinkPath::from_device, LinkPath::both_ways}) {
    for (const LinkMeans means : kAllMeans) {
      for (const LinkMemory memory : {LinkMemory::pageable, LinkMemory::registered, LinkMemory::pinned,
                                      LinkMemory::mapped, LinkMemory::managed, LinkMemory::span}) {
        // CUDA's pinned memory is also mapped, so a kernel would measure the same memory twice.
        if (means == LinkMeans::kernel && memory == LinkMemory::pinned) continue;
        routes.push_back({.device = device, .path = path, .memory = memory, .means = means, .peer = {}});
      }
    }
  }
  for (const LinkMeans means : kAllMeans) {
    for (const LinkMemory memory : {LinkMemory::device, LinkMemory::span}) {
      routes.push_back({.device = device, .path = LinkPath::within, .memory = memory, .means = means, .peer = {}});
    }
  }
  return routes;
}

std::string why_not(const LinkRoute& route) {
  if (between_devices(route.path)) return why_not_between(route);
  const bool on_host = route.path != LinkPath::within;
  const bool device_memory = route.memory == LinkMemory::device;
  if (on_host && device_memory) return "the host's side of a link cannot be device memory";
  if (!on_host && !device_memory && route.memory != LinkMemory::span) {
    return "within a device, only device memory and spans can be measured";
  }
  const DeviceProperties& has = route.device.properties();
  if (route.means == LinkMeans::kernel && route.memory == LinkMemory::pageable && !has.pageable_memory_access) {
    return "kernels cannot reach pageable memory";
  }
  if (route.memory == LinkMemory::managed && !has.concurrent_managed_access) return "no concurrent managed access";
  if (route.memory == LinkMemory::span && !has.virtual_memory_management) return "no virtual memory management";
  return {};
}

std::vector<std::size_t> link_sizes(std::size_t least, std::size_t most, std::size_t factor) {
  if (least == 0 || factor < 2) throw UsageError("sizes must start above 0 and grow by a factor of 2 or more");
  std::vector<std::size_t> sizes;
  for (std::size_t size = least; size <= most; size *= factor) {
    sizes.push_back(size);
    if (size > most / factor) break;
  }
  return sizes;
}

std::size_t saturation_bytes(const LinkCurve& curve, double share) {
  double best = 0;
  for (const LinkPoint& point : curve.points) best = point.rate > best ? point.rate : best;
  for (const LinkPoint& point : curve.points) {
    if (point.rate >= share * best) return point.bytes;
  }
  return 0;
}

std::optional<double> pcie_rate(std::optional<int> generation, std::optional<int> width) {
  // Gigatransfers per second and lane; 8b/10b coding up to generation 2, 128b/130b to 5, flits of 242 in 256 bytes in
  // 6.
  struct Generation {
    double transfers;
    double useful;
  };
  constexpr std::array<Generation, 6> kGenerations{
      {{2.5, 0.8}, {5, 0.8}, {8, 128.0 / 130}, {16, 128.0 / 130}, {32, 128.0 / 130}, {64, 242.0 / 256}}};
  if (!generation || !width || *generation < 1 || static_cast<std::size_t>(*generation) > kGenerations.size())
    return {};
  const Generation& one = kGenerations[static_cast<std::size_t>(*generation) - 1];
  return one.transfers * one.useful * 1e9 / 8 * *width;
}

}  // namespace headrace::measure
