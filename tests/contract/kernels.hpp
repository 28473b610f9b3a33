#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/barrier_mailbox.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "headrace/device/kernel.hpp"

/// The kernels of the contract tests, with their argument types in order.
namespace headrace::testing {

/// (uint32_t* words, uint32_t count, uint32_t by): adds `by` to every word.
[[nodiscard]] TypedKernel<std::uint32_t*, std::uint32_t, std::uint32_t> add_kernel();

/// The largest argument of eight_arguments_kernel().
struct Wide {
  std::uint64_t words[40];
};
/// (uint64_t* out, uint8_t, uint16_t, uint32_t, uint64_t, float, double, Wide): out[0] to out[6] become the other
/// arguments, converted; of Wide, the words as digits of base 31.
[[nodiscard]] TypedKernel<std::uint64_t*, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float, double,
                          Wide>
eight_arguments_kernel();

/// (uint32_t* seen, uint32_t stride): for item i, adds i + 1 to seen[i * stride] and writes the number of items behind.
[[nodiscard]] TypedKernel<std::uint32_t*, std::uint32_t> items_kernel();

/// Report of each thread of group_kernel().
struct GroupReport {
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t block;
  std::uint32_t block_count;
  std::uint32_t thread_count;
  std::uint32_t broadcast;
  std::uint32_t any;  ///< Whether the value of the block's last thread is odd.
  std::uint64_t sum;
  std::uint64_t before;
  std::uint64_t total;
};
/// (const uint64_t* values, GroupReport* reports): thread t contributes values[t] to every reduction.
[[nodiscard]] TypedKernel<const std::uint64_t*, GroupReport*> group_kernel();

/// (MailboxView or BarrierMailboxView boxes, uint32_t words): the blocks of item b answer the requests of box b with
/// each word plus 1, a share each.
[[nodiscard]] TypedKernel<MailboxView, std::uint32_t> team_echo_kernel();
[[nodiscard]] TypedKernel<BarrierMailboxView, std::uint32_t> team_echo_barrier_kernel();

/// (MailboxView boxes, uint32_t words): block b answers the requests of box b with each word plus 1.
[[nodiscard]] TypedKernel<MailboxView, std::uint32_t> echo_kernel();

}  // namespace headrace::testing
