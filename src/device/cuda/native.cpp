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
  auto borrowed = require_cuda(device).borrow_stream(reinterpret_cast<std::uintptr_t>(stream));
  if (!borrowed && borrowed.error().code == Errc::invalid_argument) {
    throw UsageError(fmt::format("the stream does not belong to {}", device.name()));
  }
  if (!borrowed) throw_error("borrowing a stream", borrowed.error());
  backend_ = *std::move(borrowed);
}

BorrowedStream::BorrowedStream(BorrowedStream&&) noexcept = default;
BorrowedStream& BorrowedStream::operator=(BorrowedStream&&) noexcept = default;
BorrowedStream::~BorrowedStream() = default;

}  // namespace headrace::cuda
