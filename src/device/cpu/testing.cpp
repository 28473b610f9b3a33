#include "device/cpu/testing.hpp"

#include <atomic>

namespace headrace::detail {

namespace {

constexpr std::int64_t kOff = -1;
constexpr std::int64_t kHappened = -2;

/// Number of allocations that still succeed, or one of the constants above.
std::atomic<std::int64_t> remaining{kOff};

}  // namespace

AllocationFailure::AllocationFailure(std::int64_t after) noexcept { remaining.store(after); }
AllocationFailure::~AllocationFailure() { remaining.store(kOff); }
bool AllocationFailure::happened() const noexcept { return remaining.load() == kHappened; }

bool allocation_must_fail() noexcept {
  std::int64_t left = remaining.load(std::memory_order_relaxed);
  while (left >= 0) {
    if (remaining.compare_exchange_weak(left, left == 0 ? kHappened : left - 1)) return left == 0;
  }
  return false;
}

}  // namespace headrace::detail
