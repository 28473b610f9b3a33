#include "device/cuda/device.hpp"

#include <fmt/format.h>

#include <new>

#include "device/cuda/barriers.hpp"
#include "device/cuda/code.hpp"
#include "device/cuda/current_device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/reach.hpp"
#include "device/cuda/stream.hpp"

namespace headrace::detail::cuda {

namespace {

/// Whether freeing memory of this kind waits for everything on the device (CUDA Runtime API, "Memory Management":
/// cudaFree and cudaFreeHost may synchronise).
constexpr bool waits_for_device(MemoryKind kind) noexcept {
  return kind == MemoryKind::pinned || kind == MemoryKind::mapped || kind == MemoryKind::managed ||
         kind == MemoryKind::device;
}

}  // namespace

CudaDevice::CudaDevice(int ordinal, DeviceProperties properties)
    : ordinal_(ordinal),
      properties_(std::move(properties)),
      memory_(ordinal, properties_.managed_memory, properties_.concurrent_managed_access),
      peers_(ordinal),
      pages_(ordinal, properties_) {}

MemoryInfo CudaDevice::memory() const {
  const CurrentDevice scope(ordinal_);
  MemoryInfo info;
  or_throw(cudaMemGetInfo(&info.free_bytes, &info.total_bytes),
           fmt::format("reading the free memory of cuda:{}", ordinal_));
  return info;
}

std::uint32_t CudaDevice::resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const {
  return resident_blocks(kernel, threads)
      .or_throw(fmt::format("querying how many blocks of {} threads of kernel '{}' fit on cuda:{}", threads,
                            kernel.name, ordinal_));
}

Result<std::uint32_t> CudaDevice::resident_blocks(const Kernel& kernel, std::uint32_t threads) const noexcept {
  if (!kernel.runs_on(DeviceKind::cuda)) return 0U;
  const CurrentDevice scope(ordinal_);
  int blocks = 0;
  const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.entry(DeviceKind::cuda),
                                                                    static_cast<int>(threads), 0);
  if (status != cudaSuccess) return to_error(status);
  return static_cast<std::uint32_t>(blocks * properties_.multiprocessor_count);
}

KernelResources CudaDevice::kernel_resources(const Kernel& kernel) const {
  if (!kernel.runs_on(DeviceKind::cuda)) return {};
  const CurrentDevice scope(ordinal_);
  cudaFuncAttributes attributes{};
  or_throw(cudaFuncGetAttributes(&attributes, kernel.entry(DeviceKind::cuda)),
           fmt::format("reading the attributes of kernel '{}' on cuda:{}", kernel.name, ordinal_));
  return {.registers = static_cast<std::uint32_t>(attributes.numRegs),
          .shared_bytes = attributes.sharedSizeBytes,
          .local_bytes = attributes.localSizeBytes,
          .threads_max = static_cast<std::uint32_t>(attributes.maxThreadsPerBlock)};
}

Result<void*> CudaDevice::allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept {
  CudaStream* const cuda_stream = stream == nullptr ? nullptr : as_cuda(*stream);
  if (kind == MemoryKind::stream_ordered && cuda_stream == nullptr) return Errc::invalid_argument;
  const CurrentDevice scope(ordinal_);
  if (waits_for_device(kind)) {
    const std::lock_guard lock(kept_mutex_);
    free_kept();
  }
  return memory_.allocate(kind, bytes, cuda_stream == nullptr ? nullptr : cuda_stream->native());
}

void CudaDevice::deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept {
  CudaStream* const cuda_stream = stream == nullptr ? nullptr : as_cuda(*stream);
  const CurrentDevice scope(ordinal_);
  if (waits_for_device(kind)) {
    const std::lock_guard lock(kept_mutex_);
    free_kept();
    if (!has_resident_kernels()) return memory_.deallocate(kind, data, bytes, nullptr);
    try {
      kept_.push_back({kind, data, bytes});
    } catch (const std::bad_alloc&) {  // the memory leaks, which is better than waiting forever
    }
    return;
  }
  memory_.deallocate(kind, data, bytes, cuda_stream == nullptr ? nullptr : cuda_stream->native());
}

void CudaDevice::free_kept() noexcept {
  if (kept_.empty() || has_resident_kernels()) return;
  for (const Kept& kept : kept_) memory_.deallocate(kept.kind, kept.data, kept.bytes, nullptr);
  kept_.clear();
}

Status CudaDevice::advise(ManagedAdvice advice, void* data, std::size_t bytes, const DeviceBackend* place) noexcept {
  const CurrentDevice scope(ordinal_);
  return memory_.advise(advice, data, bytes, place);
}

Result<std::unique_ptr<StreamBackend>> CudaDevice::create_stream(StreamOptions options) noexcept {
  return CudaStream::create(*this, options.priority);
}

Result<std::unique_ptr<StreamBackend>> CudaDevice::borrow_stream(std::uintptr_t native) noexcept {
  auto* stream = reinterpret_cast<cudaStream_t>(native);
  if (stream == nullptr) stream = cudaStreamLegacy;
  // The default streams belong to whatever device is current; CudaStream makes its own current.
  if (stream != cudaStreamLegacy && stream != cudaStreamPerThread) {
    int ordinal = -1;
    if (const cudaError_t status = cudaStreamGetDevice(stream, &ordinal); status != cudaSuccess)
      return to_error(status);
    if (ordinal != ordinal_) return Errc::invalid_argument;
  }
  std::unique_ptr<StreamBackend> borrowed = CudaStream::borrow(*this, stream);
  if (borrowed == nullptr) return Errc::out_of_memory;
  return borrowed;
}

Result<std::unique_ptr<EventBackend>> CudaDevice::create_event(EventTiming timing) noexcept {
  return CudaEvent::create(ordinal_, timing);
}

Result<std::unique_ptr<GraphBackend>> CudaDevice::create_graph(std::span<const GraphNode> nodes) noexcept {
  return CudaGraph::create(*this, nodes);
}

Result<std::unique_ptr<CodeBackend>> CudaDevice::load_code(std::span<const std::byte> image) noexcept {
  const CurrentDevice scope(ordinal_);
  return CudaCode::load(image);
}

KnownRange CudaDevice::look_up(const void* data) const noexcept {
  if (const auto own = memory_.find(data)) return *own;
  const CurrentDevice scope(ordinal_);
  return cuda::look_up(ordinal_, data);
}

const BarrierFunctions* CudaDevice::barrier_functions() const noexcept {
  return properties_.managed_memory && properties_.concurrent_managed_access ? &cuda::barrier_functions() : nullptr;
}

}  // namespace headrace::detail::cuda
