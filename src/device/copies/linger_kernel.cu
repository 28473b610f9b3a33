#include "device/copies/linger_kernel.hpp"

#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#include "device/cuda/copy_part.cuh"
#endif

namespace headrace::detail {

namespace {

constexpr std::uint32_t kThreads = 256;
static_assert(kThreads / 32 == LingerShare::kParts, "each part needs one warp");
static_assert(LingerShare::kWords <= 32, "one warp must be able to read a share at once");

/// Called by all threads of a team.
template <class Group>
HEADRACE_HD void copy_by_team(Group group, const Part& part) {
#if defined(__CUDA_ARCH__)
  cuda::copy_part(part, group.team_rank());
#else
  static_cast<void>(group);
  std::memcpy(part.to(), part.from(), part.bytes());
#endif
}

struct LingerBody {
  static constexpr const char* kName = "linger";
  static constexpr int kThreadsMax = kThreads;
  static constexpr std::uint32_t kNone = kLingerShares;

  /// The state of a block.
  struct State {
    LingerShare taken;
    std::uint64_t
        next[kLingerShares];  ///< For each of the block's own shares, the number of the list that it waits for.
  };

  template <class Group>
  HEADRACE_HD static void run(Group group, LingerView view, std::uint32_t generation) {
    auto& state = group.template shared<State>();
    for (std::uint32_t i = group.block(); i < kLingerShares && group.rank() == 0; i += group.block_count()) {
      // An earlier kernel may have answered it and left before its other blocks had done their part.
      state.next[i] = group.load(view.answered[i]) + 1;
    }
    group.sync();
    while (true) {
      const std::uint32_t share = group.broadcast(group.team() == 0 ? take(group, view, state, generation) : kNone);
      if (share == kNone) break;
      for (std::uint32_t i = group.team(); i < LingerShare::kParts; i += group.size() / Group::kTeam) {
        if (const Part part = state.taken.part(i); part.bytes() > 0) copy_by_team(group, part);
      }
      group.sync();
      if (group.rank() == 0)
        group.store(view.answered[share], state.next[share]++);  // pairs with LingeringCopier::wait
      group.team_sync();
    }
    if (group.rank() == 0) group.store(view.left[group.block()], generation);
  }

  /// Called by one team. Waits for a share of a list and returns its index, or kNone if none arrives.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static std::uint32_t take(Group group, const LingerView& view, State& state,
                                                      std::uint32_t generation) {
    const std::uint64_t since = group.clock_ns();
    while (true) {
      for (std::uint32_t share = group.block(); share < kLingerShares; share += group.block_count()) {
        bool posted = true;
        bool replaced = false;
        for (std::uint32_t i = group.team_rank(); i < LingerShare::kWords; i += Group::kTeam) {
          const std::uint64_t word = group.load(view.shares[share].words[i]);  // pairs with LingeringCopier's stores
          state.taken.words[i] = word;
          if (i == LingerShare::kGeneration) {
            replaced = word != generation;
          } else {
            posted = posted && LingerWord::is_of(word, state.next[share]);
          }
        }
        if (group.team_any(replaced)) return kNone;
        if (!group.team_any(!posted)) return share;
      }
      if (group.team_any(group.clock_ns() - since >= view.linger_ns)) return kNone;
      group.relax_briefly();
    }
  }
};

}  // namespace

TypedKernel<LingerView, std::uint32_t> linger_kernel() { return make_kernel<LingerBody, LingerView, std::uint32_t>(); }

LaunchShape linger_shape(Device device) {
  if (device.properties().host_cores) return {.blocks = 2};  // each block is a thread; several, to exercise that case
  return {.blocks = kLingerShares, .threads = kThreads};
}

}  // namespace headrace::detail
