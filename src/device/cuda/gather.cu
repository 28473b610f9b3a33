#include "device/cuda/gather.hpp"

#include <cuda/atomic>

#include "device/cuda/copy_part.cuh"

namespace headrace::detail::cuda {

namespace {

/// Blocks per multiprocessor: 16 warps with up to 4 KiB in flight each.
constexpr std::uint32_t kGatherBlocks = 2;

template <class List>
__global__ void __launch_bounds__(kGatherThreads, kGatherBlocks) gather_inline(const __grid_constant__ List list) {
  const std::uint32_t i = blockIdx.x * kGatherWarps + threadIdx.x / kWarp;
  if (i < list.count) copy_part(list.parts[i], threadIdx.x % kWarp);
  if (list.done == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  const ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_system> done(list.done[blockIdx.x]);
  done.store(list.number, ::cuda::memory_order_release);  // pairs with DoneWords::wait_for
}

__global__ void __launch_bounds__(kGatherThreads, kGatherBlocks)
    gather_list(const Part* parts, std::uint32_t count, std::uint32_t per_block) {
  static_assert(kPartsPerBlockMax <= kGatherThreads && sizeof(Part) == sizeof(uint4),
                "each thread fetches at most one part");
  __shared__ uint4 fetched[kPartsPerBlockMax];
  const std::uint32_t first = blockIdx.x * per_block;
  const std::uint32_t here = min(per_block, count - first);
  if (threadIdx.x < here) fetched[threadIdx.x] = reinterpret_cast<const uint4*>(parts + first)[threadIdx.x];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x / kWarp; i < here; i += kGatherWarps) {
    copy_part(reinterpret_cast<const Part*>(fetched)[i], threadIdx.x % kWarp);
  }
}

__global__ void __launch_bounds__(kGatherThreads, kGatherBlocks) gather_rows(const __grid_constant__ RowList list) {
  static_assert(kPartsPerBlockMax <= kGatherThreads && sizeof(Row) == sizeof(uint2),
                "each thread fetches at most one row");
  __shared__ uint2 fetched[kPartsPerBlockMax];
  const std::uint32_t first = blockIdx.x * list.per_block;
  const std::uint32_t here = min(list.per_block, list.count - first);
  if (threadIdx.x < here) fetched[threadIdx.x] = reinterpret_cast<const uint2*>(list.rows + first)[threadIdx.x];
  __syncthreads();
  const std::uint32_t work = here * list.parts;
  for (std::uint32_t i = threadIdx.x / kWarp; i < work; i += kGatherWarps) {
    const uint2 row = fetched[i / list.parts];
    const std::uint32_t skip = i % list.parts * kPartBytes;
    copy_part(list.to + (std::uint64_t{row.x} << list.shift) + skip,
              list.from + (std::uint64_t{row.y} << list.shift) + skip, min(list.bytes - skip, kPartBytes),
              threadIdx.x % kWarp);
  }
}

}  // namespace

const void* gather_inline_kernel(std::uint32_t count) noexcept {
  return count <= ShortInlineList::kCapacity ? reinterpret_cast<const void*>(&gather_inline<ShortInlineList>)
                                             : reinterpret_cast<const void*>(&gather_inline<InlineList>);
}
const void* gather_list_kernel() noexcept { return reinterpret_cast<const void*>(&gather_list); }
const void* gather_rows_kernel() noexcept { return reinterpret_cast<const void*>(&gather_rows); }

}  // namespace headrace::detail::cuda
