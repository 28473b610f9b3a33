#include "headrace/base/parking.hpp"

namespace headrace {

// The lock makes sure that a sleeper is either before its check of the condition or already waiting.
void Parking::wake_one() noexcept {
  {
    const std::lock_guard lock(mutex_);
  }
  condition_.notify_one();
}

void Parking::wake_all() noexcept {
  {
    const std::lock_guard lock(mutex_);
  }
  condition_.notify_all();
}

}  // namespace headrace
