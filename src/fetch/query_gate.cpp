#include "fetch/query_gate.hpp"

#include <algorithm>
#include <chrono>

namespace headrace::fetch {

std::uint64_t QueryGate::wait_for_turn(bool alone, const Poll& poll) {
  constexpr auto kLook = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++tickets_;
  waiting_.push_back(ticket);
  const auto may_enter = [&] { return waiting_.front() == ticket && !alone_ && (!alone || inside_ == 0); };
  while (!changed_.wait_for(lock, kLook, may_enter)) {
    lock.unlock();
    try {
      if (poll) poll();
    } catch (...) {
      forget(ticket);
      throw;
    }
    lock.lock();
  }
  waiting_.pop_front();
  alone_ = alone;
  ++entered_;
  if (inside_++ > 0) crowded_until_ = entered_;
  const std::uint64_t entered = entered_;
  lock.unlock();
  changed_.notify_all();
  return entered;
}

void QueryGate::forget(std::uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase(std::ranges::find(waiting_, ticket));
  }
  changed_.notify_all();
}

void QueryGate::leave() {
  {
    const std::lock_guard lock(mutex_);
    --inside_;
    alone_ = false;
  }
  changed_.notify_all();
}

bool QueryGate::has_been_alone(std::uint64_t entered) const {
  const std::lock_guard lock(mutex_);
  // A query that entered later would have met this one.
  return entered > crowded_until_ && entered_ == entered;
}

}  // namespace headrace::fetch
