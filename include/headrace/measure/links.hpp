#pragma once

// measure_link() measures the bandwidth and latency of a link against the size of a transfer (Evtushenko 2020).
// docs/links.md says how to read them.
//
//     headrace::measure::LinkOptions options;
//     options.sizes = headrace::measure::link_sizes(4096, 64 << 20, 4);
//     for (const auto& route : headrace::measure::link_routes(headrace::Device::parse("best"))) {
//       if (!headrace::measure::why_not(route).empty()) continue;
//       headrace::measure::LinkCurve curve = headrace::measure::measure_link(route, options);
//       for (const auto& point : curve.points) std::printf("%zu bytes: %g bytes/s\n", point.bytes, point.rate);
//     }

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

namespace headrace::measure {

/// Which way bytes go, as the device that does the work sees it.
enum class LinkPath : std::uint8_t {
  to_device,    ///< Host memory to the device.
  from_device,  ///< The device to host memory.
  both_ways,    ///< Both directions at once.
  within,       ///< From the device to itself.
  from_peer,    ///< Another device's memory to this one.
  to_peer,      ///< This device's memory to another's.
  both_peers,   ///< Both directions at once, driven by one device.
};

/// The memory at the far end: host memory for the first three paths, else device memory or a span on a device.
enum class LinkMemory : std::uint8_t {
  pageable,    ///< Host memory from the system's allocator.
  registered,  ///< The same, page-locked afterwards (RegisteredMemory).
  pinned,      ///< MemoryKind::pinned.
  mapped,      ///< MemoryKind::mapped.
  managed,     ///< MemoryKind::managed.
  span,        ///< Pages of a Span.
  device,      ///< MemoryKind::device.
};

/// What moves the bytes: the copy engine, or a kernel that reads and writes memory in place.
enum class LinkMeans : std::uint8_t {
  engine,  ///< Copies enqueued on a stream.
  kernel,  ///< A kernel that accesses the memory in place.
};

/// "to device", "both ways", ...
[[nodiscard]] std::string_view to_string(LinkPath path) noexcept;
/// "pageable", "pinned", ...
[[nodiscard]] std::string_view to_string(LinkMemory memory) noexcept;
/// "engine" or "kernel".
[[nodiscard]] std::string_view to_string(LinkMeans means) noexcept;

/// One way of moving bytes that can be measured.
struct LinkRoute {
  Device device;                           ///< The device that does the work.
  LinkPath path = LinkPath::to_device;     ///< The two memories and the direction.
  LinkMemory memory = LinkMemory::pinned;  ///< The memory at the far end.
  LinkMeans means = LinkMeans::engine;     ///< What moves the bytes.
  std::optional<Device> peer;              ///< For the paths between devices.
  bool peer_access = true;  ///< False: copies without peer access, which the driver may stage in host memory.
};

/// Every route of a device to the host and within itself; with `peer`, those between the two instead.
[[nodiscard]] std::vector<LinkRoute> link_routes(Device device, std::optional<Device> peer = {});

/// Why a route cannot be measured, e.g. "kernels cannot reach pageable memory"; empty if it can be tried. Throws
/// UsageError for a meaningless route: no peer, a peer that is the device itself, devices of different kinds.
[[nodiscard]] std::string why_not(const LinkRoute& route);

/// Which transfers are measured, and how often.
struct LinkOptions {
  /// In bytes, ascending, multiples of 16. Sizes that do not fit in memory are skipped.
  std::vector<std::size_t> sizes;
  int samples = 5;                                ///< Independent measurements of each size.
  std::size_t bytes_per_sample = 64 * kMiB;       ///< A sample repeats the transfer up to this much, at most 64 times.
  std::uint64_t seed = 1;                         ///< The seed of the data.
  Duration gate_bound = std::chrono::seconds(1);  ///< See LinkCurve::gated.
};

/// Sizes from `least` to `most`, each `factor` times the one before. Throws UsageError if `least` is 0 or `factor`
/// below 2.
[[nodiscard]] std::vector<std::size_t> link_sizes(std::size_t least, std::size_t most, std::size_t factor);

/// What a route does at one size of transfer.
struct LinkPoint {
  std::size_t bytes = 0;  ///< The size of a transfer.
  double rate = 0;        ///< Bytes per second of queued transfers, both directions together; median of the samples.
  double least = 0;       ///< The lowest rate of the samples.
  double most = 0;        ///< The highest rate of the samples.
  Duration alone{};       ///< One transfer by itself; median.
  int samples = 0;        ///< Samples taken.
  bool verified = false;  ///< Every byte arrived where it should.
};

/// What a route does, by size of transfer.
struct LinkCurve {
  LinkRoute route;                ///< The route that was measured.
  std::vector<LinkPoint> points;  ///< By ascending size; none if the route could not be measured.
  /// Whether the work was enqueued behind a closed gate and timed by events of the device, so that enqueueing counts
  /// for nothing. If the copying call waits for the copy (pageable and managed memory), or the gate's bound passed, the
  /// host's clock times the calls.
  bool gated = true;
  std::string note;  ///< Why there are no points, or a caveat about them.
};

/// Measures one route. Throws UsageError for bad options (no sizes, or sizes that are 0, descending or no multiple of
/// 16; samples < 1) and as why_not() does, and DeviceError if the device fails. If the machine lacks something or has
/// no room, the curve says so in `note`.
[[nodiscard]] LinkCurve measure_link(const LinkRoute& route, const LinkOptions& options);

/// Measures several routes while all of them are busy, such as every device with the host: a curve for each route, in
/// order. They begin together, and each is timed until its own end, so the sum of the rates is what the links carry
/// together as long as the rates are alike. If one route cannot be measured, none has points, and each note says which
/// and why. Throws as measure_link does, and UsageError without a route.
[[nodiscard]] std::vector<LinkCurve> measure_links_at_once(std::span<const LinkRoute> routes,
                                                           const LinkOptions& options);

/// The smallest size that reaches `share` of the curve's best rate; 0 for a curve without points.
[[nodiscard]] std::size_t saturation_bytes(const LinkCurve& curve, double share = 0.9);

/// What a PCIe link of that generation and width can carry one way, in bytes per second after line coding (PCI Express
/// Base Specification); empty if either is unknown.
[[nodiscard]] std::optional<double> pcie_rate(std::optional<int> generation, std::optional<int> width);

}  // namespace headrace::measure
