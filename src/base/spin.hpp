#pragma once

#include <cstdint>
#include <thread>

namespace headrace::detail {

/// Polls this often before a thread goes to sleep: a few microseconds, about what falling asleep and waking up costs.
inline constexpr int kSpins = 64;

/// Tells the processor that this is a waiting loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Between two looks at what another thread does, the `spins`th.
inline void relax(std::uint32_t spins) noexcept {
  if (spins % kSpins == 0) {
    std::this_thread::yield();
  } else {
    spin_pause();
  }
}

}  // namespace headrace::detail
