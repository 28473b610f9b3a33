#pragma once

#include <array>
#include <cstdint>

#include "headrace/device/kernel.hpp"
#include "measure/link_intrinsics.hpp"
#include "measure/link_latency.hpp"

/// The kernels of link_latency.hpp, and the types of their arguments in order.
namespace headrace::measure {

/// The report of a latency kernel's only thread.
struct LatencyReport {
  const ChaseNode* end;  ///< The last node of the chain.
  std::uint64_t sum;     ///< The sum of the work.
  std::uint64_t nanoseconds;
  std::uint64_t cycles;
};

/// (const ChaseNode* start, uint32_t warm, uint32_t steps, LatencyReport* report): follows `warm` steps, then `steps`
/// timed ones.
[[nodiscard]] TypedKernel<const ChaseNode*, std::uint32_t, std::uint32_t, LatencyReport*> chase_kernel(
    bool first_cache);

/// (const uint64_t* words, uint64_t count, uint64_t* sum): every thread reads its share, so that the last words are in
/// the caches. `sum` keeps the compiler from removing the loads.
[[nodiscard]] TypedKernel<const std::uint64_t*, std::uint64_t, std::uint64_t*> sweep_kernel();

/// (uint32_t* words, uint32_t count, uint32_t rounds): every thread adds 1 `rounds` times, each time to the next of
/// `count` words.
[[nodiscard]] TypedKernel<std::uint32_t*, std::uint32_t, std::uint32_t> add_all_kernel();

/// The work between a far load and its use.
struct HidingTask {
  const ChaseNode* far;       ///< Null: only the work.
  const std::uint32_t* near;  ///< Local words, for loads.
  std::uint32_t near_count;   ///< A power of two.
  std::uint32_t count;        ///< The number of arithmetic steps.
  std::uint32_t rounds;
};

/// Numbers of local loads for which there is a kernel.
inline constexpr std::array<std::uint32_t, 7> kHidingLoads{0, 1, 2, 4, 8, 16, 32};
/// Words of a cache line; neighbouring loads use different lines.
inline constexpr std::uint32_t kLineWords = 32;

/// The word of `near` that the j-th of `loads` loads of a round reads.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t near_index(std::uint32_t round, std::uint32_t j, std::uint32_t loads,
                                                             std::uint32_t near_count) noexcept {
  return (round * loads + j) * kLineWords & (near_count - 1);
}

/// One step of arithmetic, which depends on the previous one (Numerical Recipes' linear congruential generator).
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t arithmetic_step(std::uint32_t value) noexcept {
  return value * 1664525U + 1013904223U;
}

/// (HidingTask task, LatencyReport* report): `loads` of kHidingLoads.
[[nodiscard]] TypedKernel<HidingTask, LatencyReport*> hide_loads_kernel(std::uint32_t loads);
/// The same with task.count steps of arithmetic.
[[nodiscard]] TypedKernel<HidingTask, LatencyReport*> hide_arithmetic_kernel();

}  // namespace headrace::measure
