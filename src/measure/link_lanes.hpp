#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headrace/device/kernel.hpp"
#include "headrace/device/peer.hpp"
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
  /// Enqueues `count` transfers of `bytes` bytes, to and from places one after the other, as many as there is room for.
  [[nodiscard]] Status enqueue(std::size_t bytes, std::size_t count) const;
  /// The same between two timed events, after a transfer that is not counted: it gets the engine going.
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
  Stream stream_;  ///< Destroyed before the ends: its destruction waits for work on them.
  Event start_;
  Event end_;
};

/// The lanes of a route, and how they are timed.
class LinkLanes {
 public:
  /// Throws DeviceError.
  LinkLanes(const LinkRoute& route, std::size_t most_bytes, const LinkOptions& options);

  /// The time of `count` transfers of `bytes` bytes in every lane at once: that of the slowest lane.
  [[nodiscard]] Duration time(std::size_t bytes, std::size_t count);
  /// The same without a gate and without a figure: what is done at a first call, such as loading a kernel, is done
  /// then.
  void warm_up(std::size_t bytes, std::size_t count) const { static_cast<void>(time_by_host(bytes, count)); }
  void spoil(std::size_t bytes, std::size_t count) const;
  [[nodiscard]] bool arrived(std::size_t bytes, std::size_t count) const;
  [[nodiscard]] std::size_t count() const noexcept { return lanes_.size(); }
  /// See LinkCurve::gated.
  [[nodiscard]] bool gated() const noexcept { return gated_; }
  /// Whether a gate's bound passed, so that gates were given up.
  [[nodiscard]] bool expired() const noexcept { return expired_; }

 private:
  /// Empty when a gate's bound passed.
  [[nodiscard]] std::optional<Duration> time_gated(std::size_t bytes, std::size_t count);
  [[nodiscard]] Duration time_by_host(std::size_t bytes, std::size_t count) const;

  std::optional<PeerAccess> access_;
  Gate gate_;
  bool gated_;
  bool expired_ = false;
  std::vector<LinkLane> lanes_;
};

}  // namespace headrace::measure
