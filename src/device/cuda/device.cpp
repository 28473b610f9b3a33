#include "device/cuda/device.hpp"

#include <fmt/format.h>

#include "device/cuda/current_device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/stream.hpp"

namespace headrace::detail::cuda {

CudaDevice::CudaDevice(int ordinal, DeviceProperties properties)
    : ordinal_(ordinal),
      properties_(std::move(properties)),
      memory_(ordinal, properties_.managed_memory, properties_.concurrent_managed_access) {}

MemoryInfo CudaDevice::memory() const {
  const CurrentDevice scope(ordinal_);
  MemoryInfo info;
  or_throw(cudaMemGetInfo(&info.free_bytes, &info.total_bytes), fmt::format("reading the memory of cuda:{}", ordinal_));
  return info;
}

std::uint32_t CudaDevice::resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const {
  return resident_blocks(kernel, threads)
      .or_throw(fmt::format("asking how many blocks of {} threads of kernel '{}' cuda:{} holds", threads, kernel.name,
                            ordinal_));
}

Result<std::uint32_t> CudaDevice::resident_blocks(const Kernel& kernel, std::uint32_t threads) const noexcept {
  if (kernel.cuda == nullptr) return 0U;
  const CurrentDevice scope(ordinal_);
  int blocks = 0;
  const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.cuda, static_cast<int>(threads), 0);
  if (status != cudaSuccess) return to_error(status);
  return static_cast<std::uint32_t>(blocks * properties_.multiprocessor_count);
}

Result<void*> CudaDevice::allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept {
  CudaStream* const cuda_stream = stream == nullptr ? nullptr : as_cuda(*stream);
  if (kind == MemoryKind::stream_ordered && cuda_stream == nullptr) return Errc::invalid_argument;
  const CurrentDevice scope(ordinal_);
  return memory_.allocate(kind, bytes, cuda_stream == nullptr ? nullptr : cuda_stream->native());
}

void CudaDevice::deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept {
  CudaStream* const cuda_stream = stream == nullptr ? nullptr : as_cuda(*stream);
  const CurrentDevice scope(ordinal_);
  memory_.deallocate(kind, data, bytes, cuda_stream == nullptr ? nullptr : cuda_stream->native());
}

Result<std::unique_ptr<StreamBackend>> CudaDevice::create_stream(StreamOptions options) noexcept {
  return CudaStream::create(*this, options.priority);
}

Result<std::unique_ptr<EventBackend>> CudaDevice::create_event(EventTiming timing) noexcept {
  return CudaEvent::create(ordinal_, timing);
}

}  // namespace headrace::detail::cuda
