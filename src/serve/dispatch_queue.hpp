#pragma once

#include <memory>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/serve/detail/direct_lane.hpp"
#include "headrace/serve/detail/dispatch.hpp"

namespace headrace::serve::detail {

/// The device memory of a resident pool, with the layout of DispatchView: the queue and its counts.
class DispatchQueue {
 public:
  /// Allocates the memory and sets the pointers and the size of `view`, whose host half is already set. Throws
  /// UsageError if the parts of half the queue do not fit in 32 bits, DeviceError if the device has no room.
  DispatchQueue(Device device, DispatchView& view);

  /// Prepares the queue for a launch: counts are zero, and the queue holds the queries that clients have submitted and
  /// no pool has answered. `own` has the multiprocessors on which blocks stay; null for all. No kernel may use the
  /// queue meanwhile; clients may continue. Waits. Throws DeviceError.
  void fill(DispatchView& view, const std::vector<std::unique_ptr<DirectLane>>& lanes,
            const MultiprocessorSet* own) const;

  /// The memory, which must live as long as a kernel uses it.
  [[nodiscard]] std::shared_ptr<const void> memory() const { return memory_; }

 private:
  struct Memory {
    Buffer queue;
    Buffer parts;
  };
  Device device_;
  std::shared_ptr<const Memory> memory_;
  Buffer image_;  ///< The contents of the queue before a launch, in page-locked host memory.
};

}  // namespace headrace::serve::detail
