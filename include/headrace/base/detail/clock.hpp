#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace {

/// Nanoseconds since an epoch that is fixed for the life of the process.
using Time = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

/// The monotonic clock of the machine. Every latency in Headrace is a difference of two of its readings.
struct SteadyClock {
  [[nodiscard]] static Time now() noexcept {
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch());
  }
};

/// A clock for tests: it stands still until it is told to move. Safe to read from any thread.
class ManualClock {
 public:
  [[nodiscard]] Time now() const noexcept { return Time{now_.load(std::memory_order_acquire)}; }
  void advance(Duration by) noexcept { now_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<std::int64_t> now_{0};
};

}  // namespace headrace
