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
  both_ways,    ///< Both at once.
  within,       ///< From the device to itself.
  from_peer,    ///< Another device's memory to this one.
  to_peer,
  both_peers,  ///< Both at once, done by one device.
};

/// What the far side lies in: for the first three paths host memory, else device memory or a span on a device.
enum class LinkMemory : std::uint8_t { pageable, registered, pinned, mapped, managed, span, device };

/// What moves the bytes: the copy engine, or a kernel that reads and writes memory where it lies.
enum class LinkMeans : std::uint8_t { engine, kernel };

/// "to device", "both ways", ...; "pinned", ...; "engine", "kernel".
[[nodiscard]] std::string_view to_string(LinkPath path) noexcept;
[[nodiscard]] std::string_view to_string(LinkMemory memory) noexcept;
[[nodiscard]] std::string_view to_string(LinkMeans means) noexcept;

struct LinkRoute {
  Device device;  ///< Does the work.
  LinkPath path = LinkPath::to_device;
  LinkMemory memory = LinkMemory::pinned;
  LinkMeans means = LinkMeans::engine;
  std::optional<Device> peer;  ///< For the paths between devices.
  bool peer_access = true;     ///< False: copies as they are without; the driver may stage them in host memory.
};

/// Every route of a device to the host and within itself; with `peer`, those between the two instead.
[[nodiscard]] std::vector<LinkRoute> link_routes(Device device, std::optional<Device> peer = {});

/// Why a route cannot be measured, e.g. "kernels cannot reach pageable memory"; empty when it can be tried. Throws
/// UsageError for a route that says nothing: no peer, a peer that is the device, devices of two kinds.
[[nodiscard]] std::string why_not(const LinkRoute& route);

struct LinkOptions {
  std::vector<std::size_t> sizes;  ///< Ascending; multiples of 16. Those that memory has no room for drop out.
  int samples = 5;                 ///< Measurements of a size, each of its own.
  std::size_t bytes_per_sample = 64 * kMiB;  ///< A size is moved so often that it makes this much, at most 64 times.
  std::uint64_t seed = 1;                    ///< The seed of the data.
  Duration gate_bound = std::chrono::seconds(1);  ///< See LinkCurve::gated.
};

/// Sizes from `least` to `most`, each `factor` times the one before.
[[nodiscard]] std::vector<std::size_t> link_sizes(std::size_t least, std::size_t most, std::size_t factor);

struct LinkPoint {
  std::size_t bytes = 0;
  double rate = 0;   ///< Bytes per second, of several transfers queued; median. Both directions together.
  double least = 0;  ///< The least of the samples.
  double most = 0;
  Duration alone{};  ///< One transfer by itself; median.
  int samples = 0;
  bool verified = false;  ///< Every byte arrived where it should.
};

struct LinkCurve {
  LinkRoute route;
  std::vector<LinkPoint> points;
  /// Whether the work was enqueued behind a closed gate and timed by events of the device, so that enqueueing counts
  /// for nothing. Where the call that copies waits for the copy (pageable and managed memory), or the gate's bound
  /// passed, the host's clock times the calls.
  bool gated = true;
  std::string note;  ///< Why there are no points, or what is to be said of them.
};

/// Measures one route. Throws UsageError (no sizes, or 0, descending, no multiple of 16; samples < 1; see why_not) or
/// DeviceError when the device fails; what the machine has not or has no room for is a note.
[[nodiscard]] LinkCurve measure_link(const LinkRoute& route, const LinkOptions& options);

/// Measures several routes while all of them are busy, such as every device with the host: a curve for each route, in
/// order. They begin together, and each is timed until its own end, so the sum of the rates is what the links carry
/// together as long as the rates are alike. When one route cannot be measured, none has points, and each note says
/// which and why. Throws as measure_link does, and UsageError without a route.
[[nodiscard]] std::vector<LinkCurve> measure_links_at_once(std::span<const LinkRoute> routes,
                                                           const LinkOptions& options);

/// The smallest size that reaches `share` of the curve's best rate; 0 of a curve without points.
[[nodiscard]] std::size_t saturation_bytes(const LinkCurve& curve, double share = 0.9);

/// What a PCIe link of that generation and width can carry one way, in bytes per second after line coding (PCI Express
/// Base Specification); empty when either is unknown.
[[nodiscard]] std::optional<double> pcie_rate(std::optional<int> generation, std::optional<int> width);

}  // namespace headrace::measure
