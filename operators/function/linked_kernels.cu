#include "headrace/device/detail/group.cuh"
#include "headrace/serve/operator.hpp"
#include "operators/function/function_state.hpp"

/// The kernels of an operator whose function another compiler makes. nvcc leaves them as LTO-IR, which nvJitLink joins
/// with that function at run time; linked_code.cpp has their names. Compiled by cmake/HeadraceLinkedKernels.cmake
/// alone.

namespace headrace::operators {

/// The calling convention of device functions that Numba compiles: what it returns in Python goes to *nothing, and 0
/// means that no exception ended it.
extern "C" __device__ std::int32_t headrace_answer(void** nothing, const std::uint64_t* words, const void* query,
                                                   void* answer, std::uint32_t block, std::uint32_t block_count);

struct CalledFunction {
  static constexpr const char* kName = "function";
  static constexpr bool kAnswersInline = true;

  using Query = std::byte;
  using Answer = std::byte;
  using State = FunctionState;

  template <class Group>
  __device__ static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    void* nothing;
    if (headrace_answer(&nothing, state.words, query, answer, group.block(), group.block_count()) == 0) return;
    // Pairs with LoadedState::has_failed(). Before the answer is published, by whichever thread that is.
    group.store(*reinterpret_cast<std::uint32_t*>(state.failed), std::uint32_t{1});
    group.fence_system();
  }
};

// None has a name that another's begins with or contains: nvJitLink keeps all kernels that a name is a part of.
// As many threads a block as detail::cuda_entry takes.
#define HEADRACE_LINKED_KERNEL extern "C" __global__ void __launch_bounds__(1024, 1)

HEADRACE_LINKED_KERNEL headrace_kernel(FunctionState state, const std::byte* queries, std::byte* answers,
                                       std::uint64_t query_stride, std::uint64_t answer_stride,
                                       serve::ArrivalCell* arrival) {
  serve::AnswerBody<CalledFunction>::run(CudaGroup{}, state, queries, answers, query_stride, answer_stride, arrival);
}

HEADRACE_LINKED_KERNEL headrace_scattered(FunctionState state, const serve::QueryPlace* places,
                                          serve::ArrivalCell* arrival) {
  serve::ScatteredAnswerBody<CalledFunction>::run(CudaGroup{}, state, places, arrival);
}

HEADRACE_LINKED_KERNEL headrace_pool(FunctionState state, serve::DispatchView view) {
  serve::DispatchBody<CalledFunction>::run(CudaGroup{}, state, view);
}

HEADRACE_LINKED_KERNEL headrace_inline_pool(FunctionState state, serve::DispatchView view) {
  serve::InlineDispatchBody<CalledFunction>::run(CudaGroup{}, state, view);
}

HEADRACE_LINKED_KERNEL headrace_persistent(FunctionState state, serve::PersistentView<MailboxView> view) {
  serve::PersistentBody<CalledFunction, MailboxView>::run(CudaGroup{}, state, view);
}

HEADRACE_LINKED_KERNEL headrace_barrier_persistent(FunctionState state,
                                                   serve::PersistentView<BarrierMailboxView> view) {
  serve::PersistentBody<CalledFunction, BarrierMailboxView>::run(CudaGroup{}, state, view);
}

}  // namespace headrace::operators
