#pragma once

#include <cuda/atomic>
#include <type_traits>

#include "fetch/scan/block_memory.hpp"
#include "headrace/device/detail/group.cuh"

namespace headrace::fetch {

/// Uses built-in functions: the compiler sees that their word is in shared memory and emits one instruction.
/// cuda::atomic_ref uses generic addresses, whose address space the hardware must find out.
template <>
struct BlockMemory<CudaGroup> {
  [[nodiscard]] __device__ static std::uint32_t load(const CudaGroup& /*group*/, const std::uint32_t& word) noexcept {
    return ::cuda::atomic_ref<std::uint32_t, ::cuda::thread_scope_block>(const_cast<std::uint32_t&>(word))
        .load(::cuda::memory_order_relaxed);
  }
  __device__ static std::uint32_t add(const CudaGroup& /*group*/, std::uint32_t& word, std::uint32_t value) noexcept {
    return atomicAdd(&word, value);
  }
  __device__ static std::uint32_t exchange(const CudaGroup& /*group*/, std::uint32_t& word, std::uint32_t expected,
                                           std::uint32_t value) noexcept {
    return atomicCAS(&word, expected, value);
  }
  /// Loads from global memory explicitly: the compiler cannot tell that columns lie there, and resolving each address
  /// costs time.
  template <class T>
  [[nodiscard]] __device__ static T read(const T* from) noexcept {
    if constexpr (std::is_arithmetic_v<T>) {
      return __ldg(from);
    } else if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(__ldg(reinterpret_cast<const std::uintptr_t*>(from)));
    } else {
      using Word = std::conditional_t<sizeof(T) == sizeof(uint4), uint4,
                                      std::conditional_t<sizeof(T) == sizeof(uint2), uint2, std::uint32_t>>;
      return __builtin_bit_cast(T, __ldg(reinterpret_cast<const Word*>(from)));
    }
  }
  template <class T>
  [[nodiscard]] __device__ static T read_kept(const T* from) noexcept {
    static_assert(sizeof(T) == sizeof(std::uint64_t));
    std::uint64_t word = 0;
    asm("ld.global.nc.L1::evict_last.b64 %0, [%1];" : "=l"(word) : "l"(__cvta_generic_to_global(from)));
    return __builtin_bit_cast(T, word);
  }
};

}  // namespace headrace::fetch
