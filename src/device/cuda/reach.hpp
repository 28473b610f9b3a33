#pragma once

#include <cstddef>

#include "device/backend.hpp"
#include "device/known_range.hpp"

namespace headrace::detail::cuda {

/// What the driver knows about an address, as seen from one device. The caller has made the device current.
[[nodiscard]] KnownRange look_up(int ordinal, const void* data) noexcept;

/// Knows which addresses kernels of one device reach. It must not outlive a list of copies (see KnownRanges).
class Reach {
 public:
  explicit Reach(const DeviceBackend& device) noexcept : ranges_(LookUp{device}) {}

  /// True if a kernel may access all of [data, data + bytes). Memory unknown to CUDA, memory of other devices and
  /// ranges over several allocations count as out of reach.
  [[nodiscard]] bool covers(const void* data, std::size_t bytes) noexcept {
    const KnownRange& range = ranges_.find(data);
    return range.kernels_reach && holds(range, data, bytes);
  }
  [[nodiscard]] bool is_pageable(const void* data) noexcept { return !ranges_.find(data).known; }

 private:
  struct LookUp {
    const DeviceBackend& device;
    [[nodiscard]] KnownRange operator()(const void* data) const noexcept { return device.look_up(data); }
  };
  KnownRanges<LookUp> ranges_;
};

}  // namespace headrace::detail::cuda
