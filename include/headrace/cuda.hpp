#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "headrace/device/device.hpp"
#include "headrace/device/stream.hpp"

/// Headrace beside other CUDA code: the native handles behind its values. Needs the CUDA toolkit's headers and a
/// Headrace that was built with CUDA.
namespace headrace::cuda {

/// CUDA's number of `device`. Throws UsageError when it is not a CUDA device.
[[nodiscard]] int native_ordinal(Device device);

/// The stream's handle, valid as long as its owner lives. Work enqueued through it is in order with Headrace's. Do not
/// destroy it. Throws UsageError when it is not a stream of a CUDA device.
[[nodiscard]] cudaStream_t native_stream(StreamRef stream);

/// The event's handle, valid as long as its owner lives. Do not destroy it. Throws UsageError when it is not an event
/// of a CUDA device.
[[nodiscard]] cudaEvent_t native_event(EventRef event);

/// Headrace's view of a stream that other code made and destroys: `ref()` goes wherever a StreamRef does.
/// Must be destroyed before the stream; does not wait for its work.
class BorrowedStream {
 public:
  /// @param stream  of `device`, and not the default stream (null, or the legacy or per-thread constants).
  /// Throws UsageError otherwise.
  BorrowedStream(Device device, cudaStream_t stream);
  BorrowedStream(BorrowedStream&&) noexcept;
  BorrowedStream& operator=(BorrowedStream&&) noexcept;
  ~BorrowedStream();

  [[nodiscard]] StreamRef ref() const noexcept { return StreamRef(*backend_); }

 private:
  std::unique_ptr<detail::StreamBackend> backend_;
};

}  // namespace headrace::cuda
