#pragma once

#include <cstdint>
#include <thread>

namespace headrace::detail {

/// Number of polls before a thread sleeps. They take a few microseconds, about as long as falling asleep and waking up.
inline constexpr int kSpins = 64;

/// Tells the processor that this is a spin-wait loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Called between two polls of another thread's progress, the `spins`th time.
inline void relax(std::uint32_t spins) noexcept {
  if (spins % kSpins == 0) {
    std::this_thread::yield();
  } else {
    spin_pause();
  }
}

}  // namespace headrace::detail
