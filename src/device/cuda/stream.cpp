#include "device/cuda/stream.hpp"

#include <memory>
#include <new>
#include <typeinfo>

#include "device/cuda/current_device.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/engine_copy.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/listed_copies.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/pair_sort.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr int kEarlyFrom = 90;  // compute capability

Status enqueue(const Kernel& kernel, LaunchShape shape, void* const* arguments, cudaStream_t stream,
               const CudaDevice& device) noexcept {
  if (!kernel.runs_on(DeviceKind::cuda))
    return Error{Errc::not_supported, static_cast<int>(cudaErrorInvalidDeviceFunction)};
  if (shape.items > kItemsMax) return Error{Errc::invalid_argument, static_cast<int>(cudaErrorInvalidConfiguration)};
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.blocks, shape.items);
  config.blockDim = dim3(shape.threads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = shape.early && device.properties().compute_capability >= kEarlyFrom ? 1 : 0;
  return to_status(cudaLaunchKernelExC(&config, kernel.entry(DeviceKind::cuda), const_cast<void**>(arguments)));
}

}  // namespace

Result<std::unique_ptr<StreamBackend>> CudaStream::create(CudaDevice& device, Priority priority) noexcept {
  const CurrentDevice scope(device.ordinal());
  int least = 0;
  int greatest = 0;
  cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (status != cudaSuccess) return to_error(status);
  cudaStream_t native = nullptr;
  // Non-blocking, so that the default stream, which other libraries may use, does not block it.
  status = cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, priority == Priority::high ? greatest : least);
  if (status != cudaSuccess) return to_error(status);
  std::unique_ptr<StreamBackend> stream(new (std::nothrow) CudaStream(device, native, true));
  if (stream != nullptr) return stream;
  static_cast<void>(to_status(cudaStreamDestroy(native)));
  return Errc::out_of_memory;
}

std::unique_ptr<StreamBackend> CudaStream::borrow(CudaDevice& device, cudaStream_t stream) noexcept {
  return std::unique_ptr<StreamBackend>(new (std::nothrow) CudaStream(device, stream, false));
}

CudaStream::CudaStream(CudaDevice& device, cudaStream_t stream, bool owned) noexcept
    : device_(device), stream_(stream), owned_(owned), lists_(device, stream) {}

CudaStream::~CudaStream() {
  const CurrentDevice scope(device_.ordinal());
  if (!owned_) return;
  static_cast<void>(to_status(cudaStreamSynchronize(stream_)));
  static_cast<void>(to_status(cudaStreamDestroy(stream_)));
}

DeviceBackend& CudaStream::device() noexcept { return device_; }

Status CudaStream::copy(void* to, const void* from, std::size_t bytes) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return engine_copy(device_, {to, from, bytes}, stream_);
}

Status CudaStream::copy_many(std::span<const Copy> copies, CopyRoute route, PageableSink sink) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return lists_.enqueue(copies, route, {.kernel_can_start = device_.kernel_can_start(), .sink = sink});
}

Status CudaStream::copy_and_wait(std::span<const Copy> copies, PageableSink sink) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return lists_.copy_and_wait(copies, {.kernel_can_start = device_.kernel_can_start(), .sink = sink});
}

Status CudaStream::copy_rows(const RowCopies& rows) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaMemcpy2DAsync(rows.to, rows.to_pitch, rows.from, rows.from_pitch, rows.row_bytes, rows.count,
                                     cudaMemcpyDefault, stream_));
}

Status CudaStream::copy_listed(const ListedCopies& copies, ListedWay way) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return way == ListedWay::batched_memcpy ? to_status(batched_memcpy(copies, stream_))
                                          : to_status(device_runtime_copies(copies, stream_));
}

Result<std::size_t> CudaStream::listed_scratch_bytes(std::uint32_t count, ListedWay way) noexcept {
  if (way != ListedWay::batched_memcpy) return std::size_t{0};
  const CurrentDevice scope(device_.ordinal());
  std::size_t bytes = 0;
  const cudaError_t status = batched_memcpy_scratch(count, bytes);
  if (status != cudaSuccess) return to_error(status);
  return bytes;
}

Status CudaStream::fill(void* to, unsigned char value, std::size_t bytes) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaMemsetAsync(to, value, bytes, stream_));
}

Status CudaStream::prefetch(void* data, std::size_t bytes, const DeviceBackend* to) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaMemPrefetchAsync(data, bytes, location_of(to), 0, stream_));
}

Status CudaStream::launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return enqueue(kernel, shape, arguments, stream_, device_);
}

Status CudaStream::launch_resident(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept {
  const CurrentDevice scope(device_.ordinal());
  if (!kernel.runs_on(DeviceKind::cuda))
    return Error{Errc::not_supported, static_cast<int>(cudaErrorInvalidDeviceFunction)};
  const auto fitting = device_.resident_blocks(kernel, shape.threads);
  if (!fitting) return fitting.error();
  const std::uint64_t wanted = std::uint64_t{shape.blocks} * shape.items;
  if (wanted > *fitting) return Error{Errc::not_supported, static_cast<int>(*fitting)};
  struct Held {
    CudaDevice& device;
    double share;
  };
  const double share = shape.on_own_multiprocessors ? 0 : static_cast<double>(wanted) / *fitting;
  std::unique_ptr<Held> held(new (std::nothrow) Held{device_, share});
  if (held == nullptr) return Errc::out_of_memory;
  // Count it first, so that no thread launches a kernel between the count and this kernel.
  device_.resident_kernel_starts(held->share);
  Status status = enqueue(kernel, shape, arguments, stream_, device_);
  if (!status) {
    device_.resident_kernel_ends(held->share);
    return status;
  }
  const auto end = [](void* argument) {
    const std::unique_ptr<const Held> ended(static_cast<const Held*>(argument));
    ended->device.resident_kernel_ends(ended->share);
  };
  status = call(end, held.get());
  // If the callback could not be enqueued, the kernel counts forever.
  static_cast<void>(held.release());
  return status;
}

Result<std::size_t> CudaStream::pair_scratch_bytes(std::size_t count) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return cuda::pair_scratch_bytes(count);
}

Result<bool> CudaStream::sort_pairs(const PairLists& pairs) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return cuda::sort_pairs(pairs, stream_);
}

Status CudaStream::call(void (*function)(void*), void* argument) noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaLaunchHostFunc(stream_, function, argument));
}

Status CudaStream::record(EventBackend& event) noexcept {
  CudaEvent* const cuda_event = as_cuda(event);
  if (cuda_event == nullptr) return Errc::invalid_argument;
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaEventRecord(cuda_event->native(), stream_));
}

Status CudaStream::wait_for(EventBackend& event) noexcept {
  CudaEvent* const cuda_event = as_cuda(event);
  if (cuda_event == nullptr) return Errc::invalid_argument;
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaStreamWaitEvent(stream_, cuda_event->native(), cudaEventWaitDefault));
}

Result<bool> CudaStream::ready() noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_ready(cudaStreamQuery(stream_));
}

Status CudaStream::wait() noexcept {
  const CurrentDevice scope(device_.ordinal());
  return to_status(cudaStreamSynchronize(stream_));
}

CudaStream* as_cuda(StreamBackend& stream) noexcept {
  return typeid(stream) == typeid(CudaStream) ? static_cast<CudaStream*>(&stream) : nullptr;
}

}  // namespace headrace::detail::cuda
