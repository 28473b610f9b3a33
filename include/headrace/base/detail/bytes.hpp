#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

inline constexpr std::size_t kKiB = std::size_t{1} << 10;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;

/// Words written by different threads are kept this far apart: two lines, because x86 fetches lines in pairs.
inline constexpr std::size_t kNoSharing = 128;

/// `value` rounded up to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr std::size_t align_up(std::size_t value, std::size_t alignment) noexcept {
  return (value + alignment - 1) & ~(alignment - 1);
}

[[nodiscard]] constexpr bool is_power_of_two(std::size_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

/// "1.5 GiB", "64 KiB", "17 B".
[[nodiscard]] std::string format_bytes(std::size_t bytes);

/// Number of bytes that "64KiB", "1.5 GiB", "128MB" or "4096" stands for (KiB is 1024, KB is 1000). Throws UsageError
/// that names a text which is not a size.
[[nodiscard]] std::size_t parse_bytes(std::string_view text);

}  // namespace headrace
