#include "headrace/device/detail/group.cuh"
#include "headrace/serve/operator.hpp"
#include "operators/function/function_state.hpp"

/// The kernels of an operator whose function another compiler makes. nvcc compiles them to LTO-IR, which nvJitLink
/// links with that function at run time; linked_code.cpp has their names. Compiled only by
/// cmake/HeadraceLinkedKernels.cmake.

namespace headrace::operators {

/// The calling convention of device functions that Numba compiles: the Python return value goes to *nothing, and 0
/// means that no exception occurred.
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
    // Pairs with LoadedState::has_failed(). It must be visible before any thread publishes the answer.
    group.store(*reinterpret_cast<std::uint32_t*>(state.failed), std::uint32_t{1});
    group.fence_system();
  }
};

// No name may be a prefix or substring of another: nvJitLink keeps all kernels whose name contains a requested one.
// Threads per block are the same as in detail::cuda_entry.
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
