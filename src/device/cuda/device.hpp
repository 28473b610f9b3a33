#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/code.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/page_memory.hpp"
#include "device/cuda/peers.hpp"

namespace headrace::detail::cuda {

class CudaDevice final : public DeviceBackend {
 public:
  CudaDevice(int ordinal, DeviceProperties properties);

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::cuda; }
  /// CUDA's number of the device, under CUDA_VISIBLE_DEVICES.
  [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] MemoryInfo memory() const override;
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const override;
  [[nodiscard]] KernelResources kernel_resources(const Kernel& kernel) const override;

  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept override;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept override;
  [[nodiscard]] Status advise(ManagedAdvice advice, void* data, std::size_t bytes,
                              const DeviceBackend* place) noexcept override;

  [[nodiscard]] Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<StreamBackend>> borrow_stream(std::uintptr_t native) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<GraphBackend>> create_graph(std::span<const GraphNode> nodes) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<CodeBackend>> load_code(std::span<const std::byte> image) noexcept override;

  [[nodiscard]] KnownRange look_up(const void* data) const noexcept override;
  [[nodiscard]] bool kernel_can_start() const noexcept override { return !has_resident_kernels(); }
  [[nodiscard]] const BarrierFunctions* barrier_functions() const noexcept override;
  [[nodiscard]] PageMemory& page_memory() noexcept override { return pages_; }

  [[nodiscard]] Status register_host(void* data, std::size_t bytes) noexcept override;
  void unregister_host(void* data) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<ForeignMemory>> open_foreign_memory(
      std::span<const std::byte> handle) noexcept override;
  /// Maps the memory of another process, for CudaForeignMemory; errors as for open_foreign_memory().
  [[nodiscard]] Result<void*> map_foreign(std::span<const std::byte> handle) noexcept;
  /// Unmaps it, or keeps it mapped until no resident kernel is left.
  void unmap_foreign(void* data) noexcept;
  [[nodiscard]] PeerConnection connection(const DeviceBackend& peer) const noexcept override;
  [[nodiscard]] Status enable_peer(DeviceBackend& peer) noexcept override;
  void disable_peer(DeviceBackend& peer) noexcept override;
  [[nodiscard]] DeviceHealth health() const override;
  [[nodiscard]] LinkCounters link_counters() const override;

  /// resident_blocks_max() without throwing.
  [[nodiscard]] Result<std::uint32_t> resident_blocks(const Kernel& kernel, std::uint32_t threads) const noexcept;

  /// Whether a resident kernel may be on the device. Then another kernel might not start soon.
  [[nodiscard]] bool has_resident_kernels() const noexcept {
    return resident_kernels_.load(std::memory_order_acquire) > 0;
  }
  [[nodiscard]] double resident_share() const noexcept override {
    return resident_share_.load(std::memory_order_acquire);
  }
  /// @param share  see resident_share(); pass the same value to resident_kernel_ends()
  void resident_kernel_starts(double share) noexcept {
    ResidentCount::starts();
    const std::lock_guard lock(kept_mutex_);  // not while memory is being freed, which would wait for the kernel
    resident_kernels_.fetch_add(1, std::memory_order_acq_rel);
    resident_share_.fetch_add(share, std::memory_order_acq_rel);
  }
  void resident_kernel_ends(double share) noexcept {
    // The last kernel resets the share, so that no rounding error remains.
    if (resident_kernels_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      resident_share_.store(0, std::memory_order_release);
    } else {
      resident_share_.fetch_sub(share, std::memory_order_acq_rel);
    }
    ResidentCount::ends();
  }

 private:
  struct Kept {
    MemoryKind kind;
    void* data;
    std::size_t bytes;
    bool foreign = false;  ///< Mapped memory of another process; it has no kind.
  };

  /// Frees memory, or keeps it until no resident kernel is left.
  void free_or_keep(const Kept& memory) noexcept;
  /// kept_mutex_ held: frees the kept memory, unless there is a resident kernel.
  void free_kept() noexcept;
  /// kept_mutex_ held, and there is no resident kernel.
  void free_now(const Kept& memory) noexcept;

  int ordinal_;
  DeviceProperties properties_;
  Memory memory_;
  Peers peers_;
  CudaPageMemory pages_;
  std::atomic<double> resident_share_{0};
  std::mutex kept_mutex_;
  std::vector<Kept> kept_;  ///< Under kept_mutex_: memory released while a resident kernel was on the device.
  std::atomic<int> resident_kernels_{0};
};

}  // namespace headrace::detail::cuda
