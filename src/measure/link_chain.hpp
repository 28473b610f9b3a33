#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/device/stream.hpp"
#include "measure/latency_kernels.hpp"
#include "measure/link_latency.hpp"

namespace headrace::measure {

/// Nodes in local or remote memory, each with the address of the next: one ring through all of them in random order.
class Chain {
 public:
  /// Throws UsageError or DeviceError as measure_chase() does.
  Chain(Device user, FarMemory memory, std::optional<Device> peer, std::size_t bytes, std::size_t stride_bytes,
        std::uint64_t seed);

  [[nodiscard]] const ChaseNode* start() const noexcept { return after(0); }
  /// The node after `steps` steps.
  [[nodiscard]] const ChaseNode* after(std::uint64_t steps) const noexcept {
    return node(order_[steps % order_.size()]);
  }
  [[nodiscard]] std::size_t node_count() const noexcept { return order_.size(); }
  [[nodiscard]] const std::uint64_t* words() const noexcept { return memory_.as<std::uint64_t>(); }
  [[nodiscard]] std::size_t word_count() const noexcept { return memory_.bytes() / sizeof(std::uint64_t); }

 private:
  [[nodiscard]] const ChaseNode* node(std::size_t index) const noexcept {
    return reinterpret_cast<const ChaseNode*>(memory_.data() + index * stride_);
  }
  /// Writes the ring to `to`, in host memory, with the layout for memory_.
  void write(std::byte* to) const;

  std::size_t stride_;
  std::optional<PeerAccess> access_;
  Buffer memory_;
  std::vector<std::uint32_t> order_;
};

/// A stream for latency kernels, and memory for their report.
class LatencyBench {
 public:
  explicit LatencyBench(Device device);

  /// Runs a kernel with one thread whose last argument is the report, and returns the report. Throws DeviceError.
  template <class... Wanted, class... Given>
  [[nodiscard]] LatencyReport run(const TypedKernel<Wanted...>& kernel, const Given&... arguments) const {
    finish(launch(stream_, kernel, {}, arguments..., report_.as<LatencyReport>()));
    return *report_.as<LatencyReport>();
  }
  /// Every multiprocessor reads these words once.
  void sweep(const std::uint64_t* words, std::size_t count) const;
  [[nodiscard]] Device device() const noexcept { return stream_.device(); }

 private:
  void finish(Status enqueued) const;

  Buffer report_;
  Stream stream_;
};

}  // namespace headrace::measure
