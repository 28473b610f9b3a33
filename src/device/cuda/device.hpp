#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "device/backend.hpp"
#include "device/cuda/memory.hpp"

namespace headrace::detail::cuda {

class CudaDevice final : public DeviceBackend {
 public:
  CudaDevice(int ordinal, DeviceProperties properties);

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::cuda; }
  /// CUDA's own number of the device, under CUDA_VISIBLE_DEVICES.
  [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] MemoryInfo memory() const override;
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const override;

  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept override;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept override;

  [[nodiscard]] Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept override;

  /// resident_blocks_max() without throwing.
  [[nodiscard]] Result<std::uint32_t> resident_blocks(const Kernel& kernel, std::uint32_t threads) const noexcept;

  /// Whether a kernel launched to stay may be on the device: then a kernel that must start soon cannot be relied on.
  [[nodiscard]] bool has_resident_kernels() const noexcept {
    return resident_kernels_.load(std::memory_order_acquire) > 0;
  }
  void resident_kernel_starts() noexcept { resident_kernels_.fetch_add(1, std::memory_order_acq_rel); }
  void resident_kernel_ends() noexcept { resident_kernels_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  int ordinal_;
  DeviceProperties properties_;
  Memory memory_;
  std::atomic<int> resident_kernels_{0};
};

}  // namespace headrace::detail::cuda
