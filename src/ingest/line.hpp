#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/device/detail/copy_part.hpp"
#include "headrace/device/group.hpp"

/// Parts, and the 16-byte lines in which they are copied. A line can be loaded and stored whole, cut out of two lines
/// at any byte, and stored in part.
namespace headrace::ingest {

using headrace::detail::for_each_part;
using headrace::detail::kPartBytes;
using headrace::detail::Part;

inline constexpr std::uint32_t kLineBytes = headrace::detail::kPartAlignment;

struct alignas(kLineBytes) Line {
  std::uint32_t words[4];
};

/// `from` is aligned. Rings and frames are in global memory, which the compiler cannot tell from a Part.
[[nodiscard]] HEADRACE_HD inline Line load_line(const std::byte* from) noexcept {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(from));
  const uint4 value = *reinterpret_cast<const uint4*>(from);
  return {{value.x, value.y, value.z, value.w}};
#else
  Line line;
  std::memcpy(&line, from, sizeof(line));
  return line;
#endif
}

/// `to` is aligned.
HEADRACE_HD inline void store_line(std::byte* to, const Line& line) noexcept {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(to));
  *reinterpret_cast<uint4*>(to) = make_uint4(line.words[0], line.words[1], line.words[2], line.words[3]);
#else
  std::memcpy(to, &line, sizeof(line));
#endif
}

/// The lower word of (high, low) shifted right by `bits` < 32.
[[nodiscard]] HEADRACE_HD inline std::uint32_t funnel(std::uint32_t low, std::uint32_t high,
                                                      std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32) | low) >> bits);
#endif
}

/// The 16 bytes that start `offset` < 16 bytes into the 32 of `low` and `high`. Words move by constant distances, so
/// that all of them stay in registers.
[[nodiscard]] HEADRACE_HD inline Line cut_line(const Line& low, const Line& high, std::uint32_t offset) noexcept {
  std::uint32_t words[8] = {low.words[0],  low.words[1],  low.words[2],  low.words[3],
                            high.words[0], high.words[1], high.words[2], high.words[3]};
  const bool by_two = (offset & 8) != 0;
  const bool by_one = (offset & 4) != 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t i = 0; i < 6; ++i) words[i] = by_two ? words[i + 2] : words[i];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t i = 0; i < 5; ++i) words[i] = by_one ? words[i + 1] : words[i];
  const std::uint32_t bits = offset % 4 * 8;
  return {{funnel(words[0], words[1], bits), funnel(words[1], words[2], bits), funnel(words[2], words[3], bits),
           funnel(words[3], words[4], bits)}};
}

/// Stores bytes [begin, end) of the line at the same places of the aligned line at `to`, as whole words if possible.
HEADRACE_HD inline void store_some(std::byte* to, const Line& line, std::uint32_t begin, std::uint32_t end) noexcept {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(to));
#endif
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t w = 0; w < 4; ++w) {
    if (begin <= 4 * w && end >= 4 * w + 4) {
#if defined(__CUDA_ARCH__)
      reinterpret_cast<std::uint32_t*>(to)[w] = line.words[w];
#else
      std::memcpy(to + std::size_t{4} * w, &line.words[w], 4);
#endif
    } else {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (std::uint32_t b = 4 * w; b < 4 * w + 4; ++b) {
        if (b >= begin && b < end) to[b] = static_cast<std::byte>(line.words[w] >> (b % 4 * 8));
      }
    }
  }
}

}  // namespace headrace::ingest
