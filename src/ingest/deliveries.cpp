#include "ingest/deliveries.hpp"

#include <utility>

namespace headrace::ingest {

void Deliveries::push(Delivery delivery) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(delivery));
  }
  changed_.notify_one();
}

void Deliveries::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void Deliveries::fail(std::exception_ptr why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    closed_ = true;
  }
  changed_.notify_all();
}

std::optional<Delivery> Deliveries::next(Duration timeout) {
  std::unique_lock lock(mutex_);
  if (timeout > Duration{}) changed_.wait_for(lock, timeout, [this] { return !queue_.empty() || closed_; });
  if (queue_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return {};
  }
  std::optional<Delivery> first(std::move(queue_.front()));
  queue_.pop_front();
  if (first->kind == Delivery::Kind::ended) ends_taken_.fetch_add(1, std::memory_order_relaxed);
  return first;
}

bool Deliveries::ended() const {
  const std::lock_guard lock(mutex_);
  return closed_ && queue_.empty();
}

std::size_t Deliveries::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

}  // namespace headrace::ingest
