#include "serve/schedules/schedules.hpp"

namespace headrace::serve::detail {

const KernelMember& pool_kernel(const Plan& plan) noexcept {
  static constexpr KernelMember kPool = &Operator::pool;
  static constexpr KernelMember kInline = &Operator::pool_inline;
  return plan.answer_inline ? kInline : kPool;
}

const KernelMember& persistent_kernel(const Plan& plan) noexcept {
  static constexpr KernelMember kWords = &Operator::persistent;
  static constexpr KernelMember kBarrier = &Operator::persistent_barrier;
  return plan.doorbell == Doorbell::barrier ? kBarrier : kWords;
}

std::span<const KernelMember> kernels_of(const Plan& plan) noexcept {
  switch (plan.schedule) {
    case Schedule::dispatched: return {&pool_kernel(plan), 1};
    case Schedule::persistent: return {&persistent_kernel(plan), 1};
    default: return kLaunchedKernels;
  }
}

}  // namespace headrace::serve::detail
