#pragma once

// Other CUDA code works beside Headrace through this header, which gives the native handles behind Headrace's values
// and takes streams that others made. It needs the CUDA toolkit's headers and a Headrace that was built with CUDA.
//
//     headrace::Device device = headrace::Device::parse("cuda:0");
//     headrace::Stream ours(device);
//     cudaStream_t native = headrace::cuda::native_stream(ours);  // for kernels and libraries of your own
//     cudaStream_t theirs = nullptr;
//     cudaSetDevice(headrace::cuda::native_ordinal(device));
//     cudaStreamCreate(&theirs);
//     headrace::cuda::BorrowedStream borrowed(device, theirs);  // borrowed.ref() goes wherever a StreamRef does

#include <cuda_runtime_api.h>

#include <memory>

#include "headrace/device/device.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::cuda {

/// CUDA's ordinal of `device`. Throws UsageError if it is not a CUDA device.
[[nodiscard]] int native_ordinal(Device device);

/// The native handle of a stream. It is valid while the stream's owner lives; do not destroy it. Work enqueued through
/// it runs in order with Headrace's. Throws UsageError if the stream does not belong to a CUDA device.
[[nodiscard]] cudaStream_t native_stream(StreamRef stream);

/// The native handle of an event. It is valid while the event's owner lives; do not destroy it. Throws UsageError if
/// the event does not belong to a CUDA device.
[[nodiscard]] cudaEvent_t native_event(EventRef event);

/// Headrace's view of a stream that other code made and destroys: `ref()` goes wherever a StreamRef does.
/// Must be destroyed before the stream; does not wait for its work.
class BorrowedStream {
 public:
  /// Borrows `stream`.
  /// @param stream  of `device`. Null and the constants of CUDA mean the default stream of that device.
  ///
  /// Throws UsageError for a stream of another device.
  BorrowedStream(Device device, cudaStream_t stream);
  BorrowedStream(BorrowedStream&&) noexcept;
  BorrowedStream& operator=(BorrowedStream&&) noexcept;
  ~BorrowedStream();

  /// The stream as a StreamRef, valid while this object lives.
  [[nodiscard]] StreamRef ref() const noexcept { return StreamRef(*backend_); }

 private:
  std::unique_ptr<detail::StreamBackend> backend_;
};

}  // namespace headrace::cuda
