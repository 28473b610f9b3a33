#include "operators/sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/base/error.hpp"

namespace headrace::operators {

void require_in_range(std::string_view name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least || value > most) {
    throw UsageError(fmt::format("{} must be {} to {}, not {}", name, least, most, value));
  }
}

void require_multiple_of_4(std::string_view name, std::uint64_t bytes) {
  if (bytes == 0 || bytes % 4 != 0 || bytes > (1U << 20)) {
    throw UsageError(fmt::format("{} must be a multiple of 4 from 4 to 1048576, not {}", name, bytes));
  }
}

std::uint64_t next_random(std::uint64_t& state) noexcept {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

void random_bytes(std::uint64_t index, std::byte* to, std::size_t bytes) noexcept {
  std::uint64_t state = index * 0xD1342543DE82EF95ULL;
  for (std::size_t at = 0; at < bytes; at += sizeof(state)) {
    const std::uint64_t value = next_random(state);
    std::memcpy(to + at, &value, std::min(sizeof(value), bytes - at));
  }
}

}  // namespace headrace::operators
