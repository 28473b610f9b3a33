#pragma once

#include <cstdint>
#include <functional>

namespace headrace::fetch {

inline constexpr std::uint32_t kThreadsMost = 256;

/// Calls work(0) to work(threads - 1), each once, by up to so many threads of an arena of oneTBB, the caller's among them,
/// and returns when all are done. Where threads are short, one makes several calls after each other. `work` must not
/// throw. What `work` sees and leaves it orders itself: race detectors do not see into oneTBB.
void run_in_arena(std::uint32_t threads, const std::function<void(std::uint32_t)>& work);

}  // namespace headrace::fetch
