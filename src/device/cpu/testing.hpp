#pragma once

#include <cstdint>

/// For tests: makes allocations of CPU devices fail on purpose.
namespace headrace::detail {

/// While it lives, allocation number `after` from its construction (0: the next) by any CPU device fails as if there
/// were no memory: buffers, streams, events, task queues and resident launches alike. One at a time in a process.
class AllocationFailure {
 public:
  explicit AllocationFailure(std::int64_t after) noexcept;
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  /// True once the allocation has been failed. False at the end of a test means that it made fewer allocations.
  [[nodiscard]] bool happened() const noexcept;
};

/// Asked by the CPU device before each of its allocations.
[[nodiscard]] bool allocation_must_fail() noexcept;

}  // namespace headrace::detail
