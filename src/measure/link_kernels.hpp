#pragma once

#include <cstdint>

#include "headrace/device/kernel.hpp"

/// The kernels for measuring links, and the types of their arguments in order.
namespace headrace::measure {

/// (const uint32_t* word, uint32_t* expired, uint32_t ticket, uint64_t bound_ns): waits until the word has reached the
/// ticket. If the bound passes first, it writes the ticket to `expired` and ends.
[[nodiscard]] TypedKernel<const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t> gate_kernel();

/// (uint64_t* words, uint64_t count, uint64_t seed): words[i] = pattern(seed, i).
[[nodiscard]] TypedKernel<std::uint64_t*, std::uint64_t, std::uint64_t> fill_pattern_kernel();
/// (const uint64_t* words, uint64_t count, uint64_t seed, uint64_t* wrong): adds the number of words that differ from
/// that to `wrong`, which lies on the device.
[[nodiscard]] TypedKernel<const std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t*> verify_kernel();

/// What one thread moves at once.
struct alignas(16) Quad {
  std::uint32_t words[4];
};
/// (Quad* to, const Quad* from, uint64_t count)
[[nodiscard]] TypedKernel<Quad*, const Quad*, std::uint64_t> copy_kernel();
[[nodiscard]] LaunchShape copy_shape(Device device, std::size_t bytes);
/// The same for fill_pattern_kernel() and verify_kernel().
[[nodiscard]] LaunchShape words_shape(Device device, std::size_t count);

}  // namespace headrace::measure
