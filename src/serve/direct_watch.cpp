#include "serve/direct_watch.hpp"

#include "base/event_descriptor.hpp"

namespace headrace::serve::detail {

namespace {

/// How long the thread polls before it sleeps. Most answers arrive in less time than a thread switch takes.
constexpr Duration kWatchSpin = std::chrono::microseconds(20);
/// How long it sleeps between polls for an answer that a device writes.
constexpr Duration kWatchNap = std::chrono::microseconds(50);

}  // namespace

DirectWatch::DirectWatch(const DirectLane& lane) : lane_(lane), thread_([this] { run(); }) {}

DirectWatch::~DirectWatch() {
  forget();
  ends_.store(true, std::memory_order_seq_cst);  // pairs with run()
  parking_.notify_one();
  thread_.join();
}

void DirectWatch::watch(std::array<std::uint64_t, 2> positions, int descriptor) noexcept {
  {
    const std::lock_guard lock(mutex_);
    first_.store(positions[0], std::memory_order_relaxed);
    second_.store(positions[1], std::memory_order_relaxed);
    descriptor_.store(descriptor, std::memory_order_seq_cst);  // pairs with run()
  }
  parking_.notify_one();
}

void DirectWatch::forget() noexcept {
  const std::lock_guard lock(mutex_);
  descriptor_.store(-1, std::memory_order_relaxed);
}

void DirectWatch::run() noexcept {
  while (!ends_.load(std::memory_order_seq_cst)) {
    parking_.wait_until(Time::max(), [&] {
      return descriptor_.load(std::memory_order_seq_cst) >= 0 || ends_.load(std::memory_order_seq_cst);
    });
    const Time began = SteadyClock::now();
    while (descriptor_.load(std::memory_order_relaxed) >= 0) {
      if (settled()) {
        const std::lock_guard lock(mutex_);
        const int descriptor = descriptor_.load(std::memory_order_relaxed);
        if (descriptor < 0 || !settled()) continue;
        descriptor_.store(-1, std::memory_order_relaxed);
        signal_event(descriptor);
      } else if (SteadyClock::now() - began >= kWatchSpin) {
        std::this_thread::sleep_for(kWatchNap);
      }
    }
  }
}

}  // namespace headrace::serve::detail
