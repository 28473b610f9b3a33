#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace headrace::wire {

/// Bounds the memory of all requests and replies. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t most) noexcept : most_(most) {}

  /// Whether there was room for `bytes` more, which are taken then.
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    const std::size_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= most_ && bytes <= most_ - before) return true;
    give(bytes);
    return false;
  }
  void give(std::size_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  std::size_t most_;
  std::atomic<std::size_t> taken_{0};
};

/// A share of a budget, given back at its end.
class MemoryShare {
 public:
  explicit MemoryShare(MemoryBudget& budget) noexcept : budget_(&budget) {}
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  ~MemoryShare() { budget_->give(bytes_); }

  /// Makes the share so large; false, and as before, where there is no room.
  [[nodiscard]] bool resize(std::size_t bytes) noexcept {
    if (bytes > bytes_ && !budget_->take(bytes - bytes_)) return false;
    if (bytes < bytes_) budget_->give(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  MemoryBudget* budget_;
  std::size_t bytes_ = 0;
};

}  // namespace headrace::wire
