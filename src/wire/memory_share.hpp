#pragma once

#include <cstddef>

#include "base/budget.hpp"

namespace headrace::wire {

/// What one request takes of the budget that all requests and replies share; given back at its end.
class MemoryShare {
 public:
  explicit MemoryShare(Budget& budget) noexcept : budget_(&budget) {}
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  ~MemoryShare() { budget_->refund(bytes_); }

  /// Makes the share so large; false, and as before, where there is no room.
  [[nodiscard]] bool resize(std::size_t bytes) noexcept {
    if (bytes > bytes_ && !budget_->try_charge(bytes - bytes_)) return false;
    if (bytes < bytes_) budget_->refund(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Budget& budget() const noexcept { return *budget_; }

 private:
  Budget* budget_;
  std::size_t bytes_ = 0;
};

}  // namespace headrace::wire
