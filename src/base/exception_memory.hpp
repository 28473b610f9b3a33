#pragma once

#include <cxxabi.h>

#include <future>
#include <thread>
#include <utility>

namespace headrace {

/// Allocates the memory that a thread needs for its first exception. Call it as the thread begins: if the first
/// exception is thrown because memory has run out, there is none for the exception either, and the C library ends the
/// process.
inline void reserve_exception_memory() noexcept {
  // The compiler believes that the function has no effects, so it would drop a call whose result is unused.
  [[maybe_unused]] void* volatile taken = abi::__cxa_get_globals();
}

/// Starts a thread that calls `run()`. When this returns, the thread has the memory for its first exception. Throws
/// what std::thread throws.
template <class Run>
[[nodiscard]] std::thread start_ready_thread(Run run) {
  std::promise<void> ready;
  const std::future<void> is_ready = ready.get_future();
  std::thread thread([ready = std::move(ready), run = std::move(run)]() mutable {
    reserve_exception_memory();
    ready.set_value();
    run();
  });
  is_ready.wait();
  return thread;
}

}  // namespace headrace
