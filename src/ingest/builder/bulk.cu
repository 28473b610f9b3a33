#include <algorithm>
#include <cstring>

#include "headrace/device/device.hpp"
#include "ingest/builder/gather_body.hpp"
#include "ingest/builder/kernels.hpp"

#if defined(__CUDACC__)
#include <cuda/ptx>
#endif

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kStages = 2;
/// A part, rounded out to the lines in which it begins and ends.
constexpr std::uint32_t kStageBytes = kPartBytes + 2 * kLineBytes;
constexpr std::uint32_t kBlocks = 6;  ///< Blocks per multiprocessor: 24 warps with up to 192 KiB in flight.

/// The shared memory of a block.
struct Stages {
  alignas(128) std::byte bytes[kWarps][kStages][kStageBytes];
  alignas(8) std::uint64_t full[kWarps][kStages];
};
static_assert(sizeof(Stages) <= std::size_t{48} * 1024, "a block has at most 48 KiB of static shared memory");
static_assert(kBlocks * (sizeof(Stages) + 1024) <= std::size_t{227} * 1024,
              "the shared memory of a Hopper multiprocessor");

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

struct LoadShared {
  [[nodiscard]] __device__ Line operator()(const std::byte* from) const noexcept {
    __builtin_assume(__isShared(from));
    const uint4 value = *reinterpret_cast<const uint4*>(from);
    return {{value.x, value.y, value.z, value.w}};
  }
};

/// The parts of one warp, one per stage: while the warp shifts and stores one part, the engine fetches the next.
class Pipeline {
 public:
  __device__ Pipeline(Stages& stages, std::uint32_t warp, std::uint32_t lane)
      : bytes_(stages.bytes[warp]), full_(stages.full[warp]), lane_(lane) {
    if (lane_ == 0) {
      for (std::uint32_t s = 0; s < kStages; ++s) ::cuda::ptx::mbarrier_init(&full_[s], 1);
      // Pairs with the engine's arrival at the barriers.
      ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared);
    }
    __syncwarp();
  }

  /// Starts fetching part `number` of this warp. Requires: its stage has been read, and a __syncwarp() followed.
  __device__ void fetch(std::uint32_t number, const Part& part) {
    if (lane_ != 0 || part.bytes() == 0) return;
    const std::uint32_t stage = number % kStages;
    const std::uint32_t offset = skew_of(part);
    const std::uint32_t bytes = (offset + part.bytes() + kLineBytes - 1) / kLineBytes * kLineBytes;
    ::cuda::ptx::mbarrier_arrive_expect_tx(::cuda::ptx::sem_release, ::cuda::ptx::scope_cta, ::cuda::ptx::space_shared,
                                           &full_[stage], bytes);
    ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_cluster, ::cuda::ptx::space_global, bytes_[stage],
                               part.from() - offset, bytes, &full_[stage]);
  }

  /// Waits for part `number` and stores it.
  __device__ void store(std::uint32_t number, const Part& part) {
    const std::uint32_t stage = number % kStages;
    while (!::cuda::ptx::mbarrier_try_wait_parity(&full_[stage], number / kStages % 2)) {
    }
    const Part staged(part.to(), bytes_[stage] + skew_of(part), part.bytes());
    const std::uint32_t lines = line_count(part);
#pragma unroll 2
    for (std::uint32_t line = lane_; line < lines; line += kWarp) {
      LineCopy copy;
      copy.load(staged, line, LoadShared{});
      copy.store();
    }
    __syncwarp();  // the stage has been read
  }

 private:
  [[nodiscard]] __device__ static std::uint32_t skew_of(const Part& part) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(part.from()) % kLineBytes);
  }

  std::byte (*bytes_)[kStageBytes];
  std::uint64_t* full_;
  std::uint32_t lane_;
};

/// Copies every `step`-th part from `first` on. Each lane holds one of 32 parts and prefetches one of the next 32.
template <class Group>
__device__ void copy_parts(const Group& group, const Part* parts, std::uint32_t count, std::uint32_t first,
                           std::uint32_t step) {
  if (first >= count) return;
  const std::uint32_t lane = group.team_rank();
  Pipeline pipeline(group.template shared<Stages>(), group.team(), lane);
  const std::uint32_t mine = (count - first + step - 1) / step;  // parts of this warp
  const auto held = [&](std::uint32_t number) {
    return number < mine ? parts[first + std::size_t{number} * step] : Part{};
  };
  Part now = held(lane);
  Part later = held(kWarp + lane);
  pipeline.fetch(0, group.team_from(now, 0));
  for (std::uint32_t number = 0; number < mine; ++number) {
    const std::uint32_t next = number % kWarp + 1;
    const Part following = next < kWarp ? group.team_from(now, next) : group.team_from(later, 0);
    pipeline.fetch(number + 1, following);
    pipeline.store(number, group.team_from(now, next - 1));
    if (next == kWarp) {
      now = later;
      later = held(number + 1 + kWarp + lane);
    }
  }
}

#endif

struct BulkBody {
  static constexpr const char* kName = "ingest::bulk";
  static constexpr int kThreadsMax = kWarps * kWarp;
  static constexpr int kBlocksMin = kBlocks;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Part* parts, std::uint32_t count, std::uint32_t /*per_team*/,
                              DoneArgument done) {
    const std::uint32_t teams = group.size() / Group::kTeam;
    const std::uint32_t first = group.thread() / Group::kTeam;
    const std::uint32_t step = group.block_count() * teams;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    copy_parts(group, parts, count, first, step);
#else
    // Compiled but not offered: without the bulk copy engine, this is `gather`.
    for (std::uint32_t i = first; i < count; i += step) {
      if constexpr (Group::kTeam == 1) {
        copy_plainly(parts[i]);
      } else {
        gather_team<2>(group, parts + i, 1);
      }
    }
#endif
    say_done(group, done);
  }
};

}  // namespace

PartsKernel bulk_kernel() { return make_kernel<BulkBody, const Part*, std::uint32_t, std::uint32_t, DoneArgument>(); }

LaunchShape bulk_shape(Device device, std::uint32_t count) {
  const auto multiprocessors = static_cast<std::uint32_t>(std::max(device.properties().multiprocessor_count, 1));
  return {.blocks = std::clamp((count + kWarps - 1) / kWarps, 1U, multiprocessors * kBlocks),
          .threads = kWarps * kWarp};
}

}  // namespace headrace::ingest
