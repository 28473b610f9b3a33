#include "headrace/base/detail/process.hpp"

#include <pthread.h>

namespace headrace {

namespace {

struct Renewal {
  void (*renew)(void* object) noexcept;
  void* object;
  Renewal* next;
};

/// A list to which threads add without a lock, because a lock that another thread holds at the moment of a fork would
/// stay locked in the child. Entries are never removed.
std::atomic<Renewal*>& last_renewal() noexcept {
  static std::atomic<Renewal*> last{nullptr};
  return last;
}

void begin_child() noexcept {
  detail::process_generation.fetch_add(1, std::memory_order_relaxed);
  for (const Renewal* one = last_renewal().load(std::memory_order_acquire); one != nullptr; one = one->next) {
    one->renew(one->object);
  }
}

/// Runs before main(), so that it fails only if a process has no memory from the start.
[[maybe_unused]] const bool kForksAreSeen = pthread_atfork(nullptr, nullptr, &begin_child) == 0;

}  // namespace

std::atomic<std::uint32_t> detail::process_generation{0};

void renew_in_children(void (*renew)(void* object) noexcept, void* object) {
  auto* const added = new Renewal{renew, object, last_renewal().load(std::memory_order_relaxed)};
  while (!last_renewal().compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) {
  }
}

}  // namespace headrace
