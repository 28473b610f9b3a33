#pragma once

#include <cstdint>
#include <cuda/atomic>
#include <cuda/barrier>

#include "headrace/device/group.hpp"

namespace headrace {

/// CpuGroup's interface over the threads of a CUDA launch: blockIdx.x counts the blocks of an item,
/// blockIdx.y the items. A block has at most 1,024 threads.
class CudaGroup {
 public:
  static constexpr std::uint32_t kLanes = 1;

  [[nodiscard]] __device__ static std::uint32_t rank() noexcept { return threadIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t size() noexcept { return blockDim.x; }
  [[nodiscard]] __device__ static std::uint32_t block() noexcept { return blockIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t block_count() noexcept { return gridDim.x; }
  [[nodiscard]] __device__ static std::uint32_t thread() noexcept { return blockIdx.x * blockDim.x + threadIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t thread_count() noexcept { return gridDim.x * blockDim.x; }
  [[nodiscard]] __device__ static std::uint32_t item() noexcept { return blockIdx.y; }
  [[nodiscard]] __device__ static std::uint32_t item_count() noexcept { return gridDim.y; }

  __device__ static void sync() noexcept { __syncthreads(); }

  template <class T>
  [[nodiscard]] __device__ static T sum(T value) noexcept {
    __shared__ T warp_sums[kWarpsMax];
    const std::uint32_t members = warp_members();
    const std::uint32_t lane = threadIdx.x % kWarp;
    const std::uint32_t size = warp_size();
    for (std::uint32_t step = kWarp / 2; step > 0; step /= 2) {
      const T above = __shfl_down_sync(members, value, step);
      if (lane + step < size) value += above;
    }
    if (lane == 0) warp_sums[threadIdx.x / kWarp] = value;
    __syncthreads();
    T total = warp_sums[0];
    for (std::uint32_t w = 1; w < (blockDim.x + kWarp - 1) / kWarp; ++w) total += warp_sums[w];
    __syncthreads();  // the next call may overwrite warp_sums
    return total;
  }

  template <class T>
  [[nodiscard]] __device__ static T sum_before(T value, T& total) noexcept {
    __shared__ T warp_sums[kWarpsMax];
    const std::uint32_t lane = threadIdx.x % kWarp;
    const std::uint32_t warp = threadIdx.x / kWarp;
    const std::uint32_t warps = (blockDim.x + kWarp - 1) / kWarp;
    const std::uint32_t members = warp_members();
    T inclusive = value;
    for (std::uint32_t step = 1; step < kWarp; step *= 2) {
      const T below = __shfl_up_sync(members, inclusive, step);
      if (lane >= step) inclusive += below;
    }
    const bool last = lane == kWarp - 1 || threadIdx.x == blockDim.x - 1;
    if (last) warp_sums[warp] = inclusive;
    __syncthreads();
    T before{};
    total = T{};
    for (std::uint32_t w = 0; w < warps; ++w) {
      const T s = warp_sums[w];
      if (w < warp) before += s;
      total += s;
    }
    __syncthreads();  // the next call may overwrite warp_sums
    return before + inclusive - value;
  }

  [[nodiscard]] __device__ static bool any(bool value) noexcept { return __syncthreads_or(value ? 1 : 0) != 0; }

  template <class T>
  [[nodiscard]] __device__ static T broadcast(T value) noexcept {
    __shared__ T shared;
    if (threadIdx.x == 0) shared = value;
    __syncthreads();
    const T result = shared;
    __syncthreads();
    return result;
  }

  template <class T>
  [[nodiscard]] __device__ static T& shared() noexcept {
    __shared__ T storage;
    return storage;
  }

  template <class T>
  [[nodiscard]] __device__ static T load(const T& word) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(const_cast<T&>(word)).load(::cuda::memory_order_acquire);
  }

  template <class T>
  __device__ static void store(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(word).store(value, ::cuda::memory_order_release);
  }

  template <class T>
  [[nodiscard]] __device__ static T load_relaxed(const T& word) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(const_cast<T&>(word)).load(::cuda::memory_order_relaxed);
  }

  template <class T>
  __device__ static void store_relaxed(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(word).store(value, ::cuda::memory_order_relaxed);
  }

  template <class T>
  __device__ static T fetch_add_relaxed(T& word, T value) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(word).fetch_add(value, ::cuda::memory_order_relaxed);
  }

  template <class T>
  [[nodiscard]] __device__ static T load_on_device(const T& word) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(const_cast<T&>(word)).load(::cuda::memory_order_acquire);
  }

  template <class T>
  __device__ static void store_on_device(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).store(value, ::cuda::memory_order_release);
  }

  template <class T>
  __device__ static T fetch_add_on_device(T& word, T value) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).fetch_add(value, ::cuda::memory_order_acq_rel);
  }

  template <class T>
  __device__ static void store_relaxed_on_device(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).store(value, ::cuda::memory_order_relaxed);
  }

  template <class T>
  __device__ static T fetch_add_relaxed_on_device(T& word, T value) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).fetch_add(value, ::cuda::memory_order_relaxed);
  }

  template <class T>
  __device__ static void fetch_max_relaxed_on_device(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).fetch_max(value, ::cuda::memory_order_relaxed);
  }

  template <class T>
  __device__ static T compare_exchange_relaxed_on_device(T& word, T expected, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(word).compare_exchange_strong(expected, value,
                                                                                     ::cuda::memory_order_relaxed);
    return expected;
  }

  /// One 128-bit store at system scope, which is single-copy atomic (PTX ISA, "Scalar data-types": .b128).
  __device__ static void store_unit(SealedUnit& to, const SealedUnit& unit) noexcept {
    const std::uint64_t low = (std::uint64_t{unit.data[1]} << 32) | unit.data[0];
    const std::uint64_t high = (std::uint64_t{unit.sequence} << 32) | unit.data[2];
    asm volatile(
        "{\n .reg .b128 unit;\n mov.b128 unit, {%1, %2};\n st.relaxed.sys.global.b128 [%0], unit;\n}" ::"l"(&to),
        "l"(low), "l"(high)
        : "memory");
  }

  /// One 128-bit load at system scope, which is single-copy atomic as well.
  [[nodiscard]] __device__ static SealedUnit load_unit(const SealedUnit& from) noexcept {
    std::uint64_t low;
    std::uint64_t high;
    asm volatile("{\n .reg .b128 unit;\n ld.relaxed.sys.global.b128 unit, [%2];\n mov.b128 {%0, %1}, unit;\n}"
                 : "=l"(low), "=l"(high)
                 : "l"(&from)
                 : "memory");
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high)},
            static_cast<std::uint32_t>(high >> 32)};
  }

  __device__ static void fence_system() noexcept { __threadfence_system(); }
  __device__ static void fence_device() noexcept { __threadfence(); }

  static constexpr std::uint32_t kTeam = 32;
  [[nodiscard]] __device__ static std::uint32_t team_rank() noexcept { return threadIdx.x % kTeam; }
  [[nodiscard]] __device__ static std::uint32_t team() noexcept { return threadIdx.x / kTeam; }
  __device__ static void team_sync() noexcept { __syncwarp(); }

  template <class T>
  [[nodiscard]] __device__ static T team_sum_before(T value, T& total) noexcept {
    T inclusive = value;
    for (std::uint32_t step = 1; step < kTeam; step *= 2) {
      const T below = __shfl_up_sync(kWholeTeam, inclusive, step);
      if (team_rank() >= step) inclusive += below;
    }
    total = __shfl_sync(kWholeTeam, inclusive, kTeam - 1);
    return inclusive - value;
  }

  [[nodiscard]] __device__ static bool team_any(bool value) noexcept { return __any_sync(kWholeTeam, value) != 0; }
  [[nodiscard]] __device__ static std::uint32_t team_ballot(bool value) noexcept {
    return __ballot_sync(kWholeTeam, value);
  }
  [[nodiscard]] __device__ static std::uint32_t team_or(std::uint32_t value) noexcept {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(kWholeTeam, value);
#else
    for (std::uint32_t distance = 1; distance < kTeam; distance *= 2)
      value |= __shfl_xor_sync(kWholeTeam, value, static_cast<int>(distance));
    return value;
#endif
  }
  /// The `value` of the thread of that rank; T consists of 32-bit words.
  template <class T>
  [[nodiscard]] __device__ static T team_from(const T& value, std::uint32_t rank) noexcept {
    static_assert(sizeof(T) % sizeof(std::uint32_t) == 0 && std::is_trivially_copyable_v<T>);
    T result;
    std::uint32_t words[sizeof(T) / sizeof(std::uint32_t)];
    memcpy(words, &value, sizeof(T));
    for (std::uint32_t& word : words) word = __shfl_sync(kWholeTeam, word, static_cast<int>(rank));
    memcpy(&result, words, sizeof(T));
    return result;
  }
  [[nodiscard]] __device__ static std::uint32_t lowest_bit(std::uint32_t mask) noexcept {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(mask)) - 1);
  }

  [[nodiscard]] __device__ static std::uint64_t arrive(BarrierCell& cell) noexcept {
    return reinterpret_cast<Barrier&>(cell).arrive();
  }

  /// The public interface of a system-scope barrier only offers an unbounded wait. The function below implements
  /// try_wait() of block-scope barriers.
  [[nodiscard]] __device__ static bool passed(const BarrierCell& cell, std::uint64_t token) noexcept {
    return ::cuda::std::__call_try_wait(reinterpret_cast<const Barrier&>(cell), Barrier::arrival_token{token});
  }

  [[nodiscard]] __device__ static std::uint32_t multiprocessor() noexcept {
    std::uint32_t which;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(which));
    return which;
  }

  [[nodiscard]] __device__ static std::uint64_t clock_ns() noexcept {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

  /// Sleeps for 0 to 2 * `about` ns (CUDA C++ Programming Guide, __nanosleep).
  __device__ static void pause_ns(std::uint32_t about) noexcept { __nanosleep(about); }
  __device__ static void relax_briefly() noexcept {}
  __device__ static void relax() noexcept { __nanosleep(kRelaxNanoseconds); }

  __device__ static void launch_dependents() noexcept {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
  }

 private:
  using Barrier = ::cuda::barrier<::cuda::thread_scope_system>;
  static_assert(sizeof(Barrier) <= sizeof(BarrierCell) && alignof(Barrier) <= alignof(BarrierCell));

  /// Threads of this warp: the last of a block may have fewer.
  [[nodiscard]] __device__ static std::uint32_t warp_size() noexcept {
    return min(kWarp, blockDim.x - threadIdx.x / kWarp * kWarp);
  }
  /// A bit for each of them. Computed instead of read with __activemask(), which returns the threads that happen to run
  /// together; after a branch these need not be all (CUDA C++ Programming Guide, "Independent Thread Scheduling").
  [[nodiscard]] __device__ static std::uint32_t warp_members() noexcept { return kWholeTeam >> (kWarp - warp_size()); }

  static constexpr std::uint32_t kWholeTeam = 0xFFFFFFFF;
  static constexpr std::uint32_t kWarp = 32;
  static constexpr std::uint32_t kWarpsMax = 32;
  static constexpr std::uint32_t kRelaxNanoseconds = 100;
};

}  // namespace headrace
