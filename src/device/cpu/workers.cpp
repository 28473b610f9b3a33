#include "device/cpu/workers.hpp"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "base/spin.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

/// How long threads stay without a user, so that a program that creates one stream after another keeps its threads.
constexpr std::chrono::milliseconds kLinger{50};

}  // namespace

bool Workers::start_thread(int& error_number) noexcept {
  if (allocation_must_fail()) {
    error_number = ENOMEM;
    return false;
  }
  try {
    // Detached, because a Workers is never destroyed and an exiting thread decrements the count under the lock.
    std::thread([this] { work(); }).detach();
  } catch (const std::system_error& error) {
    error_number = error.code().value();
    return false;
  } catch (const std::bad_alloc&) {
    error_number = ENOMEM;
    return false;
  }
  ++live_;
  return true;
}

Status Workers::add_user() noexcept {
  const std::lock_guard lock(mutex_);
  int error_number = 0;
  while (live_ < count_ && start_thread(error_number)) {
  }
  // Fewer threads than wanted are slower but correct.
  if (live_ == 0) return error_number == ENOMEM ? Error{Errc::out_of_memory} : Error{Errc::system, error_number};
  ++users_;
  return {};
}

void Workers::remove_user() noexcept {
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) changed_.notify_all();  // threads that sleep without a limit start to linger
}

void Workers::push(Ref<Strand> strand) noexcept {
  const std::lock_guard lock(mutex_);
  ready_count_.fetch_add(1, std::memory_order_relaxed);
  const bool high = strand->high_priority();
  if (high) high_count_.fetch_add(1, std::memory_order_relaxed);
  Ready& ready = high ? high_ : normal_;
  strand->catch_up(ready.least);
  ready.strands.push_by_use(std::move(strand));
  if (sleeping_ > 0) changed_.notify_one();
}

Ref<Strand> Workers::take() noexcept {
  const bool high = !high_.strands.empty();
  Ready& ready = high ? high_ : normal_;
  Ref<Strand> strand = ready.strands.pop();
  if (!strand) return strand;
  ready.least = strand->used();
  ready_count_.fetch_sub(1, std::memory_order_relaxed);
  if (high) high_count_.fetch_sub(1, std::memory_order_relaxed);
  return strand;
}

Ref<Strand> Workers::next(std::unique_lock<std::mutex>& lock) noexcept {
  if (Ref<Strand> strand = take()) return strand;
  lock.unlock();
  for (int spin = 0; spin < kSpins && ready_count_.load(std::memory_order_relaxed) == 0; ++spin) spin_pause();
  lock.lock();
  while (true) {
    if (Ref<Strand> strand = take()) return strand;
    const bool used = users_ > 0;
    ++sleeping_;
    bool timed_out = false;
    if (used) {
      changed_.wait(lock);
    } else {
      timed_out = changed_.wait_for(lock, kLinger) == std::cv_status::timeout;
    }
    --sleeping_;
    if (timed_out && users_ == 0 && ready_count_.load(std::memory_order_relaxed) == 0) return {};
  }
}

void Workers::work() noexcept {
  // A thread inherits the binding of its creator, which may be a client bound to one processor.
  static_cast<void>(unbind_this_thread());
  pthread_setname_np(pthread_self(), "headrace-worker");
  std::unique_lock lock(mutex_);
  while (Ref<Strand> strand = next(lock)) {
    lock.unlock();
    strand->run_in_worker(*this);
    strand = {};
    lock.lock();
  }
  --live_;
}

}  // namespace headrace::detail
