#pragma once

#include <cstddef>
#include <utility>

#include "base/thread_budget.hpp"

namespace headrace::wire {

/// One request's share of the budget of all requests and replies. The destructor refunds it.
/// @tparam Pool  Budget, or ThreadBudget for a share that stays with one thread
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

  /// Changes the size of the share. Returns false, without a change, if there is no room.
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

/// A share that stays with the thread that made it.
using MemoryShare = BasicMemoryShare<ThreadBudget>;

}  // namespace headrace::wire
