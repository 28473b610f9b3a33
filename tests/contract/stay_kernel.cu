#include "tests/contract/stay_kernel.hpp"

#include <stdexcept>

#include "headrace/device/detail/resident_blocks.hpp"

namespace headrace::testing {

namespace {

/// Fault on a CPU device: the block throws.
[[noreturn]] inline void fault(CpuGroup /*group*/, StayWords* /*words*/) {
  throw std::runtime_error("a fault that the test asked for");
}

#if defined(__CUDACC__)
/// Fault on a CUDA device: the block accesses an address far beyond the words.
__device__ inline void fault(CudaGroup group, StayWords* words) {
  group.store(words[std::uint64_t{1} << 40].beat, std::uint64_t{1});
}
#endif

struct Stay {
  static constexpr const char* kName = "test::stay";
  HEADRACE_HOST_BODY
  template <class Group>
  HEADRACE_HD static void run(Group group, StayWords* words, std::uint32_t* entered) {
    if (group.rank() != 0) return;
    detail::report_entry(group, *entered, words->running, group.block_count());
    for (std::uint64_t beat = 1;; ++beat) {
      const auto mood = static_cast<Staying>(group.load(words->mood));
      if (mood == Staying::over) return;
      if (mood == Staying::fault && group.block() == 0) fault(group, words);
      if (mood == Staying::hung) {
        group.store(words->hangs, 1U);
      } else {
        if (group.load(words->stop) != 0) return;
        if (group.block() == 0) group.store(words->beat, beat);
      }
      group.relax();
    }
  }
};

}  // namespace

TypedKernel<StayWords*, std::uint32_t*> stay_kernel() { return make_kernel<Stay, StayWords*, std::uint32_t*>(); }

}  // namespace headrace::testing
