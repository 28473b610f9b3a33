#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// The few device-only instructions of the latency kernels, each with its CPU equivalent.
namespace headrace::measure {

/// A node of a chain: the address of the next.
struct ChaseNode {
  const ChaseNode* next;
};

/// One load that is cached in L1 (.ca) or only in L2 (.cg; PTX ISA, "Cache Operators"). Volatile, so that none is
/// removed. The assembler may still move independent loads, within an iteration of a loop and, if it unrolls one,
/// between iterations.
template <bool FirstCache>
[[nodiscard]] HEADRACE_HD inline const ChaseNode* load_next(const ChaseNode* at) noexcept {
#if defined(__CUDA_ARCH__)
  const ChaseNode* next;
  if constexpr (FirstCache) {
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(next) : "l"(at));
  } else {
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(at));
  }
  return next;
#else
  return at->next;
#endif
}

/// The same for a word, bypassing L1.
[[nodiscard]] HEADRACE_HD inline std::uint32_t load_word(const std::uint32_t* at) noexcept {
#if defined(__CUDA_ARCH__)
  std::uint32_t word;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(word) : "l"(at));
  return word;
#else
  return *at;
#endif
}

/// Hides the computation of `value` from the compiler, so that it keeps every step: otherwise it would merge four
/// arithmetic_step() into one multiplication.
HEADRACE_HD inline void keep_step(std::uint32_t& value) noexcept { asm volatile("" : "+r"(value)); }

/// The multiprocessor's clock; 0 on a CPU, whose clock counts something else.
[[nodiscard]] HEADRACE_HD inline std::uint64_t clock_cycles() noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint64_t>(clock64());
#else
  return 0;
#endif
}

}  // namespace headrace::measure
