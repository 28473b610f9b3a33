#include "headrace/base/detail/parking.hpp"

#include <utility>

#include "base/event_descriptor.hpp"

namespace headrace {

void Parking::arm(int descriptor) noexcept {
  const std::lock_guard lock(mutex_);
  if (armed_ >= 0) return;
  armed_ = descriptor;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
}

void Parking::disarm() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(armed_, -1) >= 0) sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Parking::ring_armed() noexcept {
  if (armed_ < 0) return;
  signal_event(std::exchange(armed_, -1));
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

// Because of the lock, a sleeper either has not checked its condition yet or is already waiting.
void Parking::wake_one() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ring_armed();
  }
  condition_.notify_one();
}

void Parking::wake_all() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ring_armed();
  }
  condition_.notify_all();
}

}  // namespace headrace
