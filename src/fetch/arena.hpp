#pragma once

#include <cstdint>

namespace headrace::fetch {

inline constexpr std::uint32_t kThreadsMost = 256;

/// Makes the calls work(argument, 0) to work(argument, threads - 1) on up to `threads` threads of a oneTBB arena, one
/// of them the caller, and returns when all have finished. If fewer threads are available, one thread makes several
/// calls in turn. `work` must not throw, and must order its memory accesses itself: race detectors do not see into
/// oneTBB.
void run_in_arena(std::uint32_t threads, void (*work)(void*, std::uint32_t), void* argument);

}  // namespace headrace::fetch
