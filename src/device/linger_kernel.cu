#include "device/linger_kernel.hpp"

#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#include "device/cuda/copy_piece.cuh"
#endif

namespace headrace::detail {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kWarp = 32;
static_assert(kLingerBlocksMax * kThreads / kWarp == kLingerPiecesMax, "a piece a warp");
static_assert(kLingerPiecesMax <= LingerPost::kCountMax);

/// By all threads of a team.
template <class Group>
HEADRACE_HD void copy_by_team(Group group, const Piece& piece) {
#if defined(__CUDA_ARCH__)
  cuda::copy_piece(piece, group.team_rank());
#else
  static_cast<void>(group);
  std::memcpy(piece.to(), piece.from(), piece.bytes());
#endif
}

struct LingerBody {
  static constexpr const char* kName = "linger";
  static constexpr int kThreadsMax = kThreads;
  static constexpr std::uint64_t kLeave = ~std::uint64_t{0};  ///< No LingerPost: it would be of too many pieces.

  template <class Group>
  HEADRACE_HD static void run(Group group, LingerView view, std::uint32_t generation) {
    const std::uint32_t teams = group.size() / Group::kTeam;
    // By a kernel that left before other blocks had done their part, perhaps.
    std::uint32_t served = group.load(view.answered[group.block()]);
    while (true) {
      const std::uint64_t word = group.broadcast(group.rank() == 0 ? look(group, view, generation, served) : 0);
      if (word == kLeave) break;
      const LingerPost post = LingerPost::of(word);
      for (std::uint32_t i = group.team() * group.block_count() + group.block(); i < post.count;
           i += teams * group.block_count()) {
        copy_by_team(group, view.pieces[i]);
      }
      group.sync();
      if (group.rank() == 0) group.store(view.answered[group.block()], post.sequence);  // pairs with LingeringCopier
      served = post.sequence;
    }
    if (group.rank() == 0) group.store(view.left[group.block()], generation);
  }

  /// The next list, or kLeave.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static std::uint64_t look(Group group, const LingerView& view, std::uint32_t generation,
                                                      std::uint32_t served) {
    const std::uint64_t since = group.clock_ns();
    while (true) {
      const std::uint64_t word = group.load(*view.posted);  // pairs with LingeringCopier::post
      const LingerPost post = LingerPost::of(word);
      if (post.generation != generation) return kLeave;
      if (post.sequence != served) return word;
      if (group.clock_ns() - since >= view.linger_ns) return kLeave;
      group.relax_briefly();
    }
  }
};

}  // namespace

Kernel linger_kernel() { return make_kernel<LingerBody, LingerView, std::uint32_t>(); }

LaunchShape linger_shape(Device device) {
  if (device.kind() == DeviceKind::cpu) return {.blocks = 2};  // threads; several, so that it is tried there
  return {.blocks = kLingerBlocksMax, .threads = kThreads};
}

}  // namespace headrace::detail
