#include "device/cuda/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "device/cuda/error.hpp"
#include "device/cuda/reach.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr std::size_t kAlignment = 256;

Result<void*> allocate_pageable(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() - kAlignment) return Errc::out_of_memory;
  void* const data = std::aligned_alloc(kAlignment, align_up(bytes, kAlignment));
  if (data == nullptr) return Errc::out_of_memory;
  return data;
}

/// Keeps freed stream-ordered memory in the pool for the next allocation. By default it returns to the system at every
/// synchronisation, which costs more than the allocator saves.
void keep_freed_memory(int ordinal) noexcept {
  cudaMemPool_t pool = nullptr;
  std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
  cudaError_t status = cudaDeviceGetDefaultMemPool(&pool, ordinal);
  if (status == cudaSuccess) status = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // without it, allocation is slower but correct
}

}  // namespace

Result<void*> Memory::allocate(MemoryKind kind, std::size_t bytes, cudaStream_t stream) noexcept {
  void* data = nullptr;
  cudaError_t status = cudaErrorInvalidValue;
  switch (kind) {
    case MemoryKind::pageable: return allocate_pageable(bytes);
    case MemoryKind::managed: return allocate_managed(bytes);
    case MemoryKind::pool: return pool_.take(bytes);
    case MemoryKind::pinned: status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable); break;
    case MemoryKind::mapped: status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped); break;
    case MemoryKind::device: status = cudaMalloc(&data, bytes); break;
    case MemoryKind::stream_ordered:
      std::call_once(keep_freed_, keep_freed_memory, ordinal_);
      status = cudaMallocAsync(&data, bytes, stream);
      break;
  }
  if (status != cudaSuccess) return to_error(status);
  if (kind != MemoryKind::stream_ordered) own_.add(look_up(ordinal_, data));
  return data;
}

void Memory::deallocate(MemoryKind kind, void* data, std::size_t bytes, cudaStream_t stream) noexcept {
  cudaError_t status = cudaSuccess;
  own_.remove(data);
  switch (kind) {
    case MemoryKind::pageable: std::free(data); break;
    case MemoryKind::pinned:
    case MemoryKind::mapped: status = cudaFreeHost(data); break;
    case MemoryKind::managed:
      status = cudaFree(data);
      managed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      break;
    case MemoryKind::device: status = cudaFree(data); break;
    case MemoryKind::stream_ordered: status = cudaFreeAsync(data, stream); break;
    case MemoryKind::pool: pool_.give(data, bytes); break;
  }
  // This function cannot report a failure; the next call that returns a status reports a device fault.
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

Result<void*> Memory::allocate_managed(std::size_t bytes) noexcept {
  if (!has_managed_) return Error{Errc::not_supported, static_cast<int>(cudaErrorNotSupported)};
  // Managed memory beyond the GPU's free memory can hang the GPU, so it is refused before CUDA sees it. All managed
  // memory of this device counts, although it prefers the host, because its pages may still be moved.
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (const auto status = cudaMemGetInfo(&free_bytes, &total_bytes); status != cudaSuccess) return to_error(status);
  const std::size_t before = managed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const bool fits = before <= free_bytes && bytes <= free_bytes - before;
  void* data = nullptr;
  cudaError_t status = cudaErrorMemoryAllocation;
  if (fits) status = cudaMallocManaged(&data, bytes, cudaMemAttachGlobal);
  if (status == cudaSuccess) {
    const Status advised = keep_on_host(data, bytes);
    if (advised) return data;
    static_cast<void>(to_status(cudaFree(data)));
    managed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return advised.error();
  }
  managed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return to_error(status);
}

Status Memory::keep_on_host(void* data, std::size_t bytes) const noexcept {
  if (!has_concurrent_managed_) return {};  // such systems move managed memory as a whole and accept no advice
  const Status stays = advise(ManagedAdvice::stay, data, bytes, nullptr);
  return stays ? advise(ManagedAdvice::mapped, data, bytes, nullptr) : stays;
}

Status Memory::advise(ManagedAdvice advice, void* data, std::size_t bytes, const DeviceBackend* place) const noexcept {
  if (!has_concurrent_managed_) return Error{Errc::not_supported, static_cast<int>(cudaErrorNotSupported)};
  const cudaMemLocation here{cudaMemLocationTypeDevice, ordinal_};
  switch (advice) {
    case ManagedAdvice::stay:
      return to_status(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, location_of(place)));
    case ManagedAdvice::mapped: return to_status(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, here));
    case ManagedAdvice::none: break;
  }
  const cudaError_t status = cudaMemAdvise(data, bytes, cudaMemAdviseUnsetPreferredLocation, here);
  if (status != cudaSuccess) return to_error(status);
  return to_status(cudaMemAdvise(data, bytes, cudaMemAdviseUnsetAccessedBy, here));
}

cudaMemLocation location_of(const DeviceBackend* place) noexcept {
  if (place == nullptr) return {cudaMemLocationTypeHost, 0};
  return {cudaMemLocationTypeDevice, place->ordinal()};
}

}  // namespace headrace::detail::cuda
