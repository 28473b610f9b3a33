#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace headrace {

/// A limit in bytes and how much of it is in use. Safe to use from any thread.
class Budget {
 public:
  explicit Budget(std::size_t limit) noexcept : limit_(limit) {}

  [[nodiscard]] bool try_charge(std::size_t bytes) noexcept {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    const std::size_t now = used + bytes;
    std::size_t most = most_.load(std::memory_order_relaxed);
    while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    return true;
  }
  void refund(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// The highest number of bytes ever in use at once.
  [[nodiscard]] std::size_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> used_{0};  ///< Never above limit_.
  std::atomic<std::size_t> most_{0};
};

}  // namespace headrace
