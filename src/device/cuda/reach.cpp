#include "device/cuda/reach.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "device/cuda/driver.hpp"

namespace headrace::detail::cuda {

namespace {

/// In a thread without a context the driver knows no memory. The runtime binds a device's context to a thread only at
/// the first call that needs one. Setting the current device again is not such a call; freeing null is.
void bind_context(int ordinal) noexcept {
  thread_local int bound = -1;
  if (bound == ordinal) return;
  if (cudaFree(nullptr) == cudaSuccess) bound = ordinal;
}

}  // namespace

KnownRange look_up(int ordinal, const void* data) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  KnownRange range{.begin = address, .end = address + 1};
  if (driver().pointer_get_attributes == nullptr) {
    range.known = true;  // nothing is known, so the copy engine finds out what it is
    range.host_reads = false;
    return range;
  }
  unsigned memory_type = 0;
  unsigned managed = 0;
  int owner = -1;
  CUdeviceptr device_pointer = 0;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  std::array<CUpointer_attribute, 8> attributes{
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  std::array<void*, 8> values{&memory_type, &managed, &owner, &device_pointer, &start, &bytes, &context, &pool};
  bind_context(ordinal);
  const CUresult status = driver().pointer_get_attributes(attributes.size(), attributes.data(), values.data(), address);
  if (status != CUDA_SUCCESS || memory_type == 0) return range;
  range.known = true;
  const bool of_host = memory_type == CU_MEMORYTYPE_HOST;
  // Mapped virtual memory belongs to no context. Its range is the reservation, parts of which may be unmapped or
  // inaccessible to this device or the host. A kernel that touched them would end the process's use of CUDA.
  const bool reserved = context == nullptr && pool == nullptr;
  range.host_reads = !reserved && (of_host || managed != 0);
  range.kernels_reach = !reserved && (of_host || owner == ordinal || managed != 0) && device_pointer == address;
  // Kernels cannot use a range of unknown extent, so its copies go to the copy engine.
  if (!reserved && start != 0 && start <= address && address - start < bytes) {
    range.begin = start;
    range.end = start + bytes;
  }
  return range;
}

}  // namespace headrace::detail::cuda
