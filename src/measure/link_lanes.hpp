#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/device/detail/peer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/measure/links.hpp"
#include "measure/link_gate.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_memory.hpp"

namespace headrace::measure {

/// One direction of a route: two ends, and the stream that moves bytes from one to the other.
class LinkLane {
 public:
  LinkLane(const LinkRoute& route, LinkEnd from, LinkEnd to, std::uint64_t seed);

  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }
  /// Enqueues `count` transfers of `bytes` bytes, at consecutive places as far as there is room, then from the start
  /// again.
  [[nodiscard]] Status enqueue(std::size_t bytes, std::size_t count) const;
  /// The same between two timed events, after an uncounted transfer that starts the engine.
  [[nodiscard]] Status enqueue_timed(std::size_t bytes, std::size_t count) const;
  [[nodiscard]] Result<Duration> time() const { return end_.since(start_); }
  void spoil(std::size_t bytes, std::size_t count) const { to_.spoil(touched(bytes, count)); }
  [[nodiscard]] bool arrived(std::size_t bytes, std::size_t count) const {
    return to_.holds(touched(bytes, count), seed_);
  }

 private:
  [[nodiscard]] std::size_t touched(std::size_t bytes, std::size_t count) const noexcept;
  [[nodiscard]] Status move(std::size_t offset, std::size_t bytes) const;

  LinkMeans means_;
  LinkEnd from_;
  LinkEnd to_;
  std::uint64_t seed_;
  TypedKernel<Quad*, const Quad*, std::uint64_t> kernel_;
  Stream stream_;  ///< Destroyed before the ends, because its destructor waits for work on them.
  Event start_;
  Event end_;
};

/// The lanes of one or several routes, with their timing.
class LinkLanes {
 public:
  /// Throws DeviceError. There is at least one route.
  LinkLanes(std::span<const LinkRoute> routes, std::size_t most_bytes, const LinkOptions& options);

  /// Times `count` transfers of `bytes` bytes in every lane at once. The time of a route is that of its slowest lane.
  [[nodiscard]] std::vector<Duration> time(std::size_t bytes, std::size_t count);
  /// The same without a gate or a result, so that work of a first call, such as loading a kernel, is done before.
  void warm_up(std::size_t bytes, std::size_t count) const { static_cast<void>(time_by_host(bytes, count)); }
  void spoil(std::size_t bytes, std::size_t count) const;
  /// Whether all bytes of a route arrived.
  [[nodiscard]] bool arrived(std::size_t route, std::size_t bytes, std::size_t count) const;
  /// The lanes of a route: its directions.
  [[nodiscard]] std::size_t count(std::size_t route) const noexcept;
  /// See LinkCurve::gated.
  [[nodiscard]] bool gated() const noexcept { return gated_; }
  /// Whether a gate's bound passed, so that gates are no longer used.
  [[nodiscard]] bool expired() const noexcept { return expired_; }

 private:
  /// Empty if a gate's bound passed.
  [[nodiscard]] std::optional<std::vector<Duration>> time_gated(std::size_t bytes, std::size_t count);
  [[nodiscard]] std::vector<Duration> time_by_host(std::size_t bytes, std::size_t count) const;
  void add(const LinkRoute& route, std::size_t most_bytes, std::uint64_t seed);

  std::vector<PeerAccess> access_;
  Gate gate_;
  bool gated_;
  bool expired_ = false;
  std::vector<LinkLane> lanes_;
  std::vector<std::size_t> ends_;  ///< For each route, the lane after its last.
};

}  // namespace headrace::measure
