#pragma once

#include <cstddef>
#include <utility>

#include "base/thread_budget.hpp"

namespace headrace::wire {

/// What one request takes of the budget that all requests and replies share; given back at its end.
/// @tparam Pool  Budget, or ThreadBudget for what stays with one thread
template <class Pool>
class BasicMemoryShare {
 public:
  explicit BasicMemoryShare(Pool& pool) noexcept : pool_(&pool) {}
  BasicMemoryShare(BasicMemoryShare&& other) noexcept : pool_(other.pool_), bytes_(std::exchange(other.bytes_, 0)) {}
  BasicMemoryShare& operator=(BasicMemoryShare&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BasicMemoryShare() {
    if (bytes_ > 0) pool_->refund(bytes_);
  }

  /// Makes the share so large; false, and as before, where there is no room.
  [[nodiscard]] bool resize(std::size_t bytes) noexcept {
    if (bytes > bytes_ && !pool_->try_charge(bytes - bytes_)) return false;
    if (bytes < bytes_) pool_->refund(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  Pool* pool_;
  std::size_t bytes_ = 0;
};

/// What stays with the thread that made it.
using MemoryShare = BasicMemoryShare<ThreadBudget>;

}  // namespace headrace::wire
