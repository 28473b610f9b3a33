#pragma once

#include <cstdint>

/// Fault injection for tests: makes allocations of CPU devices fail.
namespace headrace::detail {

/// During its lifetime, allocation number `after` from its construction (0: the next) by any CPU device fails as if
/// memory had run out. That covers buffers, streams, events, task queues and resident launches. A process may have one
/// at a time.
class AllocationFailure {
 public:
  explicit AllocationFailure(std::int64_t after) noexcept;
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  /// True once an allocation was made to fail. False at the end of a test means that the test made fewer allocations.
  [[nodiscard]] bool happened() const noexcept;
};

/// The CPU device calls it before each of its allocations.
[[nodiscard]] bool allocation_must_fail() noexcept;

}  // namespace headrace::detail
