#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>

#include "device/backend.hpp"
#include "device/cuda/size_class_pool.hpp"
#include "device/own_ranges.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace::detail::cuda {

/// The location for a place of managed memory: null is the host, else a CUDA device.
[[nodiscard]] cudaMemLocation location_of(const DeviceBackend* place) noexcept;

/// Allocates every kind of memory for one device. The caller has made the device current.
class Memory {
 public:
  Memory(int ordinal, bool has_managed, bool has_concurrent_managed) noexcept
      : ordinal_(ordinal), has_managed_(has_managed), has_concurrent_managed_(has_concurrent_managed) {}

  /// @param stream  only read for stream_ordered.
  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes, cudaStream_t stream) noexcept;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes, cudaStream_t stream) noexcept;
  /// Errc::not_supported if host and device cannot use managed memory at the same time.
  [[nodiscard]] Status advise(ManagedAdvice advice, void* data, std::size_t bytes,
                              const DeviceBackend* place) const noexcept;

  /// What is known about an address without asking the driver.
  [[nodiscard]] std::optional<KnownRange> find(const void* data) const noexcept { return own_.find(data); }

 private:
  [[nodiscard]] Result<void*> allocate_managed(std::size_t bytes) noexcept;
  [[nodiscard]] Status keep_on_host(void* data, std::size_t bytes) const noexcept;

  int ordinal_;
  bool has_managed_;
  bool has_concurrent_managed_;
  std::atomic<std::size_t> managed_bytes_{0};
  std::once_flag keep_freed_;
  SizeClassPool pool_;
  OwnRanges own_;  ///< The ranges of kinds pinned, mapped and device.
};

}  // namespace headrace::detail::cuda
