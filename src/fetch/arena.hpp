#pragma once

#include <cstdint>

namespace headrace::fetch {

inline constexpr std::uint32_t kThreadsMost = 256;

/// Calls work(argument, 0) to work(argument, threads - 1), each once, by up to so many threads of an arena of oneTBB,
/// the caller's among them, and returns when all are done. Where threads are short, one makes several calls after each
/// other. `work` must not throw. What `work` sees and leaves it orders itself: race detectors do not see into oneTBB.
void run_in_arena(std::uint32_t threads, void (*work)(void*, std::uint32_t), void* argument);

}  // namespace headrace::fetch
