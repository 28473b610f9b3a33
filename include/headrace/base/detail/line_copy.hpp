#pragma once

#include <algorithm>
#include <cstddef>

namespace headrace {

inline constexpr std::size_t kLineBytes = 64;

/// Copies to `to`, which is aligned to a cache line, with one store per line if the processor has such stores. A line
/// that is written whole need not be read first from its last owner, which is a device for the slots of a lane.
void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Prefetches lines from `at` on for writing, so that this core owns them when it writes: all, or the first `most`
/// bytes.
inline void prefetch_to_write(const std::byte* at, std::size_t bytes, std::size_t most) noexcept {
  for (std::size_t line = 0; line < std::min(bytes, most); line += kLineBytes) __builtin_prefetch(at + line, 1);
}

}  // namespace headrace
