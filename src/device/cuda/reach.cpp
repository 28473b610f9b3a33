#include "device/cuda/reach.hpp"

#include <cuda_runtime_api.h>

#include "device/cuda/driver.hpp"

namespace headrace::detail::cuda {

bool Reach::covers(const void* data, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  for (const Range& range : ranges_) {
    if (begin >= range.begin && begin < range.end) return range.reachable && bytes <= range.end - begin;
  }
  const Range range = ask(begin);
  ranges_[oldest_] = range;
  oldest_ = (oldest_ + 1) % ranges_.size();
  return range.reachable && bytes <= range.end - begin;
}

Reach::Range Reach::ask(std::uintptr_t address) const noexcept {
  if (driver().pointer_get_attributes == nullptr) return {};
  unsigned memory_type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  CUdeviceptr device_pointer = 0;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  std::array<CUpointer_attribute, 8> attributes{
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  std::array<void*, 8> values{&memory_type, &managed, &ordinal, &device_pointer, &start, &bytes, &context, &pool};
  const auto query = [&] {
    return driver().pointer_get_attributes(attributes.size(), attributes.data(), values.data(), address);
  };
  CUresult status = query();
  if (status == CUDA_ERROR_INVALID_CONTEXT) {
    // The runtime binds a device's context to a thread at its first call that needs one; setting the device does too.
    static_cast<void>(cudaSetDevice(ordinal_));
    status = query();
  }
  if (status != CUDA_SUCCESS || memory_type == 0) return {};
  // Mapped virtual memory belongs to no context; its range is what was reserved, and parts of that may be unmapped or
  // closed to this device. A kernel that touched them would end the process's use of CUDA.
  if (context == nullptr && pool == nullptr) return {};
  const bool here = memory_type == CU_MEMORYTYPE_HOST || ordinal == ordinal_ || managed != 0;
  Range range{address, address + 1, here && device_pointer == address};
  if (start != 0 && start <= address && address - start < bytes) range = {start, start + bytes, range.reachable};
  // A range of unknown extent is of no use to a kernel: its copies go to the copy engine.
  return range;
}

}  // namespace headrace::detail::cuda
