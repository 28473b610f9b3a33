#include "device/cuda/foreign_memory.hpp"

#include <cuda_runtime_api.h>

#include <new>
#include <utility>

#include "device/cuda/current_device.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/error.hpp"

namespace headrace::detail::cuda {

Result<std::unique_ptr<ForeignMemory>> CudaForeignMemory::open(CudaDevice& device,
                                                               std::span<const std::byte> handle) noexcept {
  if (driver().mem_get_address_range == nullptr) return Errc::not_supported;
  const Result<void*> mapped = device.map_foreign(handle);
  if (!mapped) return mapped.error();
  std::unique_ptr<CudaForeignMemory> memory(new (std::nothrow) CudaForeignMemory(device, *mapped));
  if (memory == nullptr) {
    device.unmap_foreign(*mapped);
    return Errc::out_of_memory;
  }
  if (const Status measured = memory->measure(); !measured) return measured.error();
  auto stream = device.create_stream({});
  if (!stream) return stream.error();
  memory->stream_ = *std::move(stream);
  return std::unique_ptr<ForeignMemory>(std::move(memory));
}

CudaForeignMemory::CudaForeignMemory(CudaDevice& device, void* data) noexcept
    : device_(device), data_(static_cast<std::byte*>(data)) {}

CudaForeignMemory::~CudaForeignMemory() { device_.unmap_foreign(data_); }

Status CudaForeignMemory::measure() noexcept {
  const CurrentDevice scope(device_.ordinal());
  cudaPointerAttributes attributes{};
  const cudaError_t status = cudaPointerGetAttributes(&attributes, data_);
  if (status != cudaSuccess) return to_error(status);
  // A peer's memory can be mapped as well, but the client named another device than its own.
  if (attributes.device != device_.ordinal()) return Errc::invalid_argument;
  const auto address = reinterpret_cast<CUdeviceptr>(data_);
  CUdeviceptr begin = 0;
  std::size_t whole = 0;
  const CUresult found = driver().mem_get_address_range(&begin, &whole, address);
  // The driver's error codes equal the runtime's (driver_types.h, cudaError).
  if (found != CUDA_SUCCESS) return to_error(static_cast<cudaError_t>(found));
  bytes_ = whole - static_cast<std::size_t>(address - begin);
  return {};
}

bool CudaForeignMemory::holds(std::size_t at, std::size_t bytes) const noexcept {
  return at <= bytes_ && bytes <= bytes_ - at;
}

Status CudaForeignMemory::read(std::size_t at, void* to, std::size_t bytes) noexcept {
  return holds(at, bytes) ? copy(to, data_ + at, bytes) : Errc::invalid_argument;
}

Status CudaForeignMemory::write(std::size_t at, const void* from, std::size_t bytes) noexcept {
  return holds(at, bytes) ? copy(data_ + at, from, bytes) : Errc::invalid_argument;
}

Status CudaForeignMemory::copy(void* to, const void* from, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const Status copied = stream_->copy(to, from, bytes);
  const Status done = stream_->wait();  // in any case, because a part may have been submitted
  return copied ? done : copied;
}

}  // namespace headrace::detail::cuda
