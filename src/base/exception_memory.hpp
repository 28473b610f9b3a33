#pragma once

#include <cxxabi.h>

#include <future>
#include <thread>
#include <utility>

namespace headrace {

/// Takes the memory that a thread needs for its first exception. To be called as the thread begins: where the first
/// exception is thrown because memory has ended, there is none for it either, and the C library ends the process.
inline void reserve_exception_memory() noexcept {
  // The function is declared without effects: a call whose result is not used would be left out.
  [[maybe_unused]] void* volatile taken = abi::__cxa_get_globals();
}

/// A thread that calls `run()`, and has the memory for its first exception when this returns. Throws what std::thread
/// does.
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
