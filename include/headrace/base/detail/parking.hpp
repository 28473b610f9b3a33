#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "headrace/base/detail/clock.hpp"

namespace headrace {

/// A place where threads sleep until there is work. Notifying costs one load while no thread sleeps.
///
/// No wake-up is lost if the condition is made true by a sequentially consistent store before notify(), and `ready`
/// reads it with a sequentially consistent load: then either notify() sees the sleeper or the sleeper sees the
/// condition.
class Parking {
 public:
  void notify_one() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_one();
  }
  void notify_all() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all();
  }

  /// Sleeps until ready() or `until` (on SteadyClock). Returns the last value of ready().
  template <class Ready>
  bool wait_until(Time until, Ready ready) {
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool is_ready = true;
    if (until == Time::max()) {
      condition_.wait(lock, ready);
    } else {
      is_ready = condition_.wait_until(lock, std::chrono::steady_clock::time_point(until), ready);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return is_ready;
  }

  /// For a thread that sleeps elsewhere, such as in an event loop: the next notify_one() or notify_all() writes to the
  /// eventfd `descriptor`, once. After arming, the caller reads the condition as `ready` of wait_until() does. Only one
  /// descriptor is armed at a time, and an armed one stays.
  void arm(int descriptor) noexcept;
  /// After it, nothing is written until the next arm().
  void disarm() noexcept;

 private:
  void ring_armed() noexcept;
  void wake_one() noexcept;
  void wake_all() noexcept;

  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  int armed_ = -1;  ///< An eventfd, which counts as a sleeper. Under the mutex.
  std::condition_variable condition_;
};

}  // namespace headrace
