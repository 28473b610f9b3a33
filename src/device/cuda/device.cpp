#include "device/cuda/device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "device/cuda/barriers.hpp"
#include "device/cuda/code.hpp"
#include "device/cuda/current_device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/foreign_memory.hpp"
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

/// Why CUDA refused a handle of another process. Some of its many codes for that also stand for failed devices, but a
/// device that has failed refuses other calls as well.
Error why_refused(cudaError_t code) noexcept {
  const Error error = to_error(code);
  if (error.code != Errc::device_fault) return error;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const cudaError_t other = cudaMemGetInfo(&free_bytes, &total_bytes);
  return other == cudaSuccess ? Error{Errc::invalid_argument, error.native} : to_error(other);
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
  if (waits_for_device(kind)) return free_or_keep({kind, data, bytes});
  memory_.deallocate(kind, data, bytes, cuda_stream == nullptr ? nullptr : cuda_stream->native());
}

void CudaDevice::free_or_keep(const Kept& memory) noexcept {
  const std::lock_guard lock(kept_mutex_);
  free_kept();
  if (!has_resident_kernels()) return free_now(memory);
  try {
    kept_.push_back(memory);
  } catch (const std::bad_alloc&) {  // the memory leaks, which is better than waiting forever
  }
}

void CudaDevice::free_kept() noexcept {
  if (kept_.empty() || has_resident_kernels()) return;
  for (const Kept& kept : kept_) free_now(kept);
  kept_.clear();
}

void CudaDevice::free_now(const Kept& memory) noexcept {
  if (!memory.foreign) return memory_.deallocate(memory.kind, memory.data, memory.bytes, nullptr);
  // This function cannot report a failure; the next call that returns a status reports a device fault.
  static_cast<void>(to_status(cudaIpcCloseMemHandle(memory.data)));
}

Result<std::unique_ptr<ForeignMemory>> CudaDevice::open_foreign_memory(std::span<const std::byte> handle) noexcept {
  return CudaForeignMemory::open(*this, handle);
}

Result<void*> CudaDevice::map_foreign(std::span<const std::byte> handle) noexcept {
  static_assert(sizeof(cudaIpcMemHandle_t) == kMemoryHandleBytes);
  if (handle.size() != kMemoryHandleBytes) return Errc::invalid_argument;
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.data(), sizeof(native));
  const CurrentDevice scope(ordinal_);
  const std::lock_guard lock(kept_mutex_);  // no resident kernel starts meanwhile
  if (has_resident_kernels()) return Errc::full;
  free_kept();
  void* data = nullptr;
  const cudaError_t status = cudaIpcOpenMemHandle(&data, native, cudaIpcMemLazyEnablePeerAccess);
  if (status != cudaSuccess) return why_refused(status);
  return data;
}

void CudaDevice::unmap_foreign(void* data) noexcept {
  const CurrentDevice scope(ordinal_);
  free_or_keep({.kind = MemoryKind::device, .data = data, .bytes = 0, .foreign = true});
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
