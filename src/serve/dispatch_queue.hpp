#pragma once

#include <memory>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/serve/detail/direct_lane.hpp"
#include "headrace/serve/detail/dispatch.hpp"

namespace headrace::serve::detail {

/// The device half of what a resident pool uses, laid out as DispatchView says: the queue and its counts.
class DispatchQueue {
 public:
  /// Takes the memory and sets the pointers and the size of `view`, whose host half is set. Throws UsageError when
  /// parts of half the queue cannot be counted, DeviceError when the device has no room.
  DispatchQueue(Device device, DispatchView& view);

  /// As it is before a launch: counts are zero, and the queue holds what clients have submitted and no pool has
  /// answered. `own` has the multiprocessors on which blocks are to stay; null: on all. No kernel may use the queue
  /// meanwhile; clients may go on. Waits. Throws DeviceError.
  void fill(DispatchView& view, const std::vector<std::unique_ptr<DirectLane>>& lanes,
            const MultiprocessorSet* own) const;

  /// What lives as long as a kernel uses it.
  [[nodiscard]] std::shared_ptr<const void> memory() const { return memory_; }

 private:
  struct Memory {
    Buffer queue;
    Buffer parts;
  };
  Device device_;
  std::shared_ptr<const Memory> memory_;
  Buffer image_;  ///< The queue as it is before a launch, in page-locked memory of the host.
};

}  // namespace headrace::serve::detail
