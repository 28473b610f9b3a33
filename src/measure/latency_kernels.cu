#include "measure/latency_kernels.hpp"

#include <utility>

namespace headrace::measure {

namespace {

template <bool FirstCache>
struct Chase {
  static constexpr const char* kName = "link::chase";
  template <class Group>
  HEADRACE_HD static void run(Group group, const ChaseNode* start, std::uint32_t warm, std::uint32_t steps,
                              LatencyReport* report) {
    if (group.thread() != 0) return;
    const ChaseNode* at = start;
    for (std::uint32_t i = 0; i < warm; ++i) at = load_next<FirstCache>(at);
    // The report needs the chain's end in any case, so the compiler cannot move the clock reads.
    if (at == nullptr) return;
    const std::uint64_t began = group.clock_ns();
    const std::uint64_t cycles = clock_cycles();
    for (std::uint32_t i = 0; i < steps; ++i) at = load_next<FirstCache>(at);
    if (at == nullptr) return;  // waits for the last load
    report->cycles = clock_cycles() - cycles;
    report->nanoseconds = group.clock_ns() - began;
    report->end = at;
    report->sum = 0;
  }
};

struct Sweep {
  static constexpr const char* kName = "link::sweep";
  template <class Group>
  HEADRACE_HD static void run(Group group, const std::uint64_t* words, std::uint64_t count, std::uint64_t* sum) {
    std::uint64_t mine = 0;
    for (std::uint64_t i = group.thread(); i < count; i += group.thread_count()) mine += words[i];
    if (mine == ~std::uint64_t{0}) *sum = mine;
  }
};

struct AddAll {
  static constexpr const char* kName = "link::add_all";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::uint32_t* words, std::uint32_t count, std::uint32_t rounds) {
    std::uint32_t at = group.thread() % count;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      group.fetch_add_relaxed(words[at], std::uint32_t{1});
      at = at + 1 == count ? 0 : at + 1;
    }
  }
};

template <std::uint32_t Loads>
struct HideLoads {
  static constexpr const char* kName = "link::hide_loads";
  template <class Group>
  HEADRACE_HD static void run(Group group, HidingTask task, LatencyReport* report) {
    if (group.thread() != 0) return;
    const ChaseNode* at = task.far;
    std::uint32_t sum = 0;
    const std::uint64_t began = group.clock_ns();
    const std::uint64_t cycles = clock_cycles();
    // If unrolled, the near loads of several rounds would be issued together.
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t round = 0; round < task.rounds; ++round) {
      const ChaseNode* next = at;
      if (task.far != nullptr) next = load_next<false>(at);
      if constexpr (Loads > 0) {
        std::uint32_t words[Loads];
        for (std::uint32_t j = 0; j < Loads; ++j) {
          words[j] = load_word(task.near + near_index(round, j, Loads, task.near_count));
        }
        for (std::uint32_t j = 0; j < Loads; ++j) sum += words[j];
      }
      at = next;  // the address for the next round, which waits for this load
    }
    report->end = at;
    report->sum = sum;
    report->cycles = clock_cycles() - cycles;
    report->nanoseconds = group.clock_ns() - began;
  }
};

struct HideArithmetic {
  static constexpr const char* kName = "link::hide_arithmetic";
  template <class Group>
  HEADRACE_HD static void run(Group group, HidingTask task, LatencyReport* report) {
    if (group.thread() != 0) return;
    const ChaseNode* at = task.far;
    std::uint32_t value = 1;
    const std::uint64_t began = group.clock_ns();
    const std::uint64_t cycles = clock_cycles();
    for (std::uint32_t round = 0; round < task.rounds; ++round) {
      const ChaseNode* next = at;
      if (task.far != nullptr) next = load_next<false>(at);
      for (std::uint32_t j = 0; j < task.count; ++j) {
        value = arithmetic_step(value);
        keep_step(value);
      }
      at = next;
    }
    report->end = at;
    report->sum = value;
    report->cycles = clock_cycles() - cycles;
    report->nanoseconds = group.clock_ns() - began;
  }
};

template <std::size_t... Index>
TypedKernel<HidingTask, LatencyReport*> loads_kernel(std::uint32_t loads, std::index_sequence<Index...>) {
  TypedKernel<HidingTask, LatencyReport*> found;
  ((kHidingLoads[Index] == loads
        ? void(found = make_kernel<HideLoads<kHidingLoads[Index]>, HidingTask, LatencyReport*>())
        : void()),
   ...);
  return found;
}

}  // namespace

TypedKernel<const ChaseNode*, std::uint32_t, std::uint32_t, LatencyReport*> chase_kernel(bool first_cache) {
  if (first_cache) {
    return make_kernel<Chase<true>, const ChaseNode*, std::uint32_t, std::uint32_t, LatencyReport*>();
  }
  return make_kernel<Chase<false>, const ChaseNode*, std::uint32_t, std::uint32_t, LatencyReport*>();
}

TypedKernel<const std::uint64_t*, std::uint64_t, std::uint64_t*> sweep_kernel() {
  return make_kernel<Sweep, const std::uint64_t*, std::uint64_t, std::uint64_t*>();
}
TypedKernel<std::uint32_t*, std::uint32_t, std::uint32_t> add_all_kernel() {
  return make_kernel<AddAll, std::uint32_t*, std::uint32_t, std::uint32_t>();
}
TypedKernel<HidingTask, LatencyReport*> hide_loads_kernel(std::uint32_t loads) {
  return loads_kernel(loads, std::make_index_sequence<kHidingLoads.size()>{});
}
TypedKernel<HidingTask, LatencyReport*> hide_arithmetic_kernel() {
  return make_kernel<HideArithmetic, HidingTask, LatencyReport*>();
}

}  // namespace headrace::measure
