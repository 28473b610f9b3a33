#pragma once

#include <atomic>
#include <cstddef>

#include "base/budget.hpp"

namespace headrace {

/// One thread's part of a Budget. It keeps some spare bytes, so that most charges and refunds touch no memory that
/// other threads write. Only spare() may be called by other threads.
class ThreadBudget {
 public:
  /// @param spare_max  bytes that it keeps beyond what is charged; 0 for none
  ThreadBudget(Budget& whole, std::size_t spare_max) noexcept : whole_(whole), spare_max_(spare_max) {}
  ThreadBudget(const ThreadBudget&) = delete;
  ThreadBudget& operator=(const ThreadBudget&) = delete;
  ~ThreadBudget() { whole_.refund(spare()); }

  [[nodiscard]] bool try_charge(std::size_t bytes) noexcept {
    std::size_t spare = this->spare();
    if (bytes > spare) {
      const std::size_t lacking = bytes - spare;
      const std::size_t ahead = spare_max_ / 2;
      if (whole_.try_charge(lacking + ahead)) {
        spare += lacking + ahead;
      } else if (whole_.try_charge(lacking)) {
        spare += lacking;
      } else {
        return false;
      }
    }
    spare_.store(spare - bytes, std::memory_order_relaxed);
    return true;
  }
  void refund(std::size_t bytes) noexcept {
    std::size_t spare = this->spare() + bytes;
    if (spare > spare_max_) {
      const std::size_t kept = spare_max_ / 2;
      whole_.refund(spare - kept);
      spare = kept;
    }
    spare_.store(spare, std::memory_order_relaxed);
  }

  /// Bytes taken from the Budget that are not charged yet. Any thread may call it.
  [[nodiscard]] std::size_t spare() const noexcept { return spare_.load(std::memory_order_relaxed); }

 private:
  Budget& whole_;
  std::size_t spare_max_;
  std::atomic<std::size_t> spare_{0};
};

}  // namespace headrace
