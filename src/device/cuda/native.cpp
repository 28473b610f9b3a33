#include <fmt/format.h>

#include "device/cuda/device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/stream.hpp"
#include "headrace/cuda.hpp"

namespace headrace::cuda {

namespace {

detail::cuda::CudaDevice& require_cuda(Device device) {
  if (device.kind() == DeviceKind::cuda) return static_cast<detail::cuda::CudaDevice&>(device.backend());
  throw UsageError(fmt::format("{} has no CUDA handles: it is not a CUDA device", device.name()));
}

}  // namespace

int native_ordinal(Device device) { return require_cuda(device).ordinal(); }

cudaStream_t native_stream(StreamRef stream) {
  const auto* const backend = detail::cuda::as_cuda(stream.backend());
  if (backend != nullptr) return backend->native();
  throw UsageError(fmt::format("a stream of {} has no CUDA handle", stream.device().name()));
}

cudaEvent_t native_event(EventRef event) {
  const auto* const backend = detail::cuda::as_cuda(event.backend());
  if (backend != nullptr) return backend->native();
  throw UsageError("an event of a CPU device has no CUDA handle");
}

BorrowedStream::BorrowedStream(Device device, cudaStream_t stream) {
  auto& owner = require_cuda(device);
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    throw UsageError("Headrace does not use the default stream: pass a stream made with cudaStreamCreateWithFlags");
  }
  int ordinal = -1;
  detail::cuda::or_throw(cudaStreamGetDevice(stream, &ordinal), "borrowing a stream");
  if (ordinal != owner.ordinal()) {
    throw UsageError(fmt::format("the stream belongs to cuda:{}, not to {}", ordinal, device.name()));
  }
  backend_ = detail::cuda::CudaStream::borrow(owner, stream);
  if (backend_ == nullptr) throw DeviceError(Errc::out_of_memory, "borrowing a stream: out of memory");
}

BorrowedStream::BorrowedStream(BorrowedStream&&) noexcept = default;
BorrowedStream& BorrowedStream::operator=(BorrowedStream&&) noexcept = default;
BorrowedStream::~BorrowedStream() = default;

}  // namespace headrace::cuda
