#pragma once

#include <cmath>
#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::operators {

/// The arithmetic of one step. The scales are so close to 1 that after thousands of steps the end still depends on the
/// start, and below 1 so that nothing overflows.
struct FmaChain {
  static constexpr float kScaleA = 1.0F - 0x1p-12F;
  static constexpr float kShiftA = 0x1p-13F;
  static constexpr float kScaleB = -(1.0F - 0x1p-12F);
  static constexpr float kShiftB = 0.875F;

  /// The start of a chain, in [0, 1).
  [[nodiscard]] HEADRACE_HD static float seed(std::uint32_t word, std::uint32_t lane) {
    return static_cast<float>((word ^ (lane * 0x9E3779B9U)) >> 8) * 0x1p-24F;
  }
};

/// Runs the two chains of `lane_count` lanes, `step_count` steps each, and calls `done(lane, a, b)` with their results.
/// `word(lane)` returns the bits that seed a lane. On the CPU, kLanes lanes advance together so that the compiler can
/// use SIMD; on CUDA a thread has one lane. The results are bit-equal on both, because every step rounds once.
/// @param lane_count  below 2^31
/// @param first, stride  the lanes of the calling thread, in units of Group::kLanes lanes
template <class Group, class Word, class Done>
HEADRACE_HD void fma_chains(std::uint32_t first, std::uint32_t stride, std::uint32_t lane_count,
                            std::uint32_t step_count, Word word, Done done) {
  constexpr std::uint32_t kWidth = Group::kLanes;
  for (std::uint32_t base = first * kWidth; base < lane_count; base += stride * kWidth) {
    float a[kWidth];
    float b[kWidth];
    for (std::uint32_t i = 0; i < kWidth; ++i) {
      const std::uint32_t lane = base + i < lane_count ? base + i : lane_count - 1;
      a[i] = FmaChain::seed(word(lane), lane);
      b[i] = 1.0F - a[i];
    }
#if defined(__CUDA_ARCH__)
    // The compiler must not see that one scale is the negative of the other. It would keep both in one register, and
    // half of the multiply-adds could then read both operands from one register bank: 15% slower on an H100.
    constexpr std::uint32_t kNoLanes = 0x8000'0000;
    const float scale_b = __uint_as_float(__float_as_uint(FmaChain::kScaleB) ^ (lane_count & kNoLanes));
#pragma unroll 8
#else
    constexpr float scale_b = FmaChain::kScaleB;
#endif
    for (std::uint32_t step = 0; step < step_count; ++step) {
      for (std::uint32_t i = 0; i < kWidth; ++i) {
        a[i] = fmaf(a[i], FmaChain::kScaleA, FmaChain::kShiftA);
        b[i] = fmaf(b[i], scale_b, FmaChain::kShiftB);
      }
    }
    for (std::uint32_t i = 0; i < kWidth && base + i < lane_count; ++i) done(base + i, a[i], b[i]);
  }
}

}  // namespace headrace::operators
