#include "device/cuda/engine_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cuda/error.hpp"
#include "device/known_range.hpp"

namespace headrace::detail::cuda {

namespace {

/// How many of the `bytes` bytes from `data` on lie in one allocation according to the driver; all of them if it does
/// not know.
std::size_t bytes_in_one(const DeviceBackend& device, const void* data, std::size_t bytes) noexcept {
  const std::uintptr_t end = device.look_up(data).end;
  const std::size_t here = end - reinterpret_cast<std::uintptr_t>(data);
  return here > 1 ? std::min(here, bytes) : bytes;
}

cudaError_t enqueue(const Copy& copy, cudaStream_t stream) noexcept {
  return cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, stream);
}

}  // namespace

Status engine_copy(const DeviceBackend& device, const Copy& copy, cudaStream_t stream) noexcept {
  cudaError_t status = enqueue(copy, stream);
  Copy rest = copy;
  // Ask only after a refusal, because the query costs as much as submitting a copy.
  while (status == cudaErrorInvalidValue && rest.bytes > 0) {
    const std::size_t bytes = bytes_in_one(device, rest.to, bytes_in_one(device, rest.from, rest.bytes));
    if (bytes == copy.bytes) break;
    static_cast<void>(cudaGetLastError());
    const cudaError_t enqueued = enqueue({rest.to, rest.from, bytes}, stream);
    if (enqueued != cudaSuccess) return to_status(enqueued);
    rest = {static_cast<std::byte*>(rest.to) + bytes, static_cast<const std::byte*>(rest.from) + bytes,
            rest.bytes - bytes};
  }
  return rest.bytes == 0 ? Status{} : to_status(status);
}

}  // namespace headrace::detail::cuda
