#pragma once

#include <algorithm>
#include <cstddef>

namespace headrace {

inline constexpr std::size_t kLineBytes = 64;

/// Copies to `to`, which is aligned to a line of the cache, a line a store where the processor has such stores. Lines
/// that are written whole need not be read first from whoever had them last: a device, for the slots of a lane.
void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Asks for lines from `at` on to be this core's own by the time that it writes them: all, or the first `most` bytes.
inline void prefetch_to_write(const std::byte* at, std::size_t bytes, std::size_t most) noexcept {
  for (std::size_t line = 0; line < std::min(bytes, most); line += kLineBytes) __builtin_prefetch(at + line, 1);
}

}  // namespace headrace
