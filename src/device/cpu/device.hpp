#pragma once

#include <map>
#include <mutex>
#include <string>

#include "device/backend.hpp"
#include "device/cpu/memory.hpp"
#include "device/cpu/page_arena.hpp"
#include "device/cpu/workers.hpp"

namespace headrace::detail {

/// The processors of this process as a device. Several may exist; they share only the processors.
class CpuDevice final : public DeviceBackend {
 public:
  /// Throws UsageError when HEADRACE_CPU_MEMORY is not a size.
  explicit CpuDevice(int ordinal);

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::cpu; }
  [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] MemoryInfo memory() const override { return memory_.info(); }
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const override;
  [[nodiscard]] KernelResources kernel_resources(const Kernel& kernel) const override;

  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept override;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept override;
  /// Does nothing, because all memory is host memory.
  [[nodiscard]] Status advise(ManagedAdvice /*advice*/, void* /*data*/, std::size_t /*bytes*/,
                              const DeviceBackend* /*place*/) noexcept override {
    return {};
  }

  [[nodiscard]] Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<GraphBackend>> create_graph(std::span<const GraphNode> nodes) noexcept override;

  /// Treats every address as plain memory.
  [[nodiscard]] KnownRange look_up(const void* data) const noexcept override;
  [[nodiscard]] bool kernel_can_start() const noexcept override { return true; }
  [[nodiscard]] const BarrierFunctions* barrier_functions() const noexcept override;
  [[nodiscard]] PageMemory& page_memory() noexcept override;

  [[nodiscard]] Status register_host(void* data, std::size_t bytes) noexcept override;
  void unregister_host(void* data) noexcept override;
  [[nodiscard]] PeerConnection connection(const DeviceBackend& peer) const noexcept override;
  [[nodiscard]] Status enable_peer(DeviceBackend& peer) noexcept override;
  void disable_peer(DeviceBackend& peer) noexcept override;
  [[nodiscard]] DeviceHealth health() const override;
  [[nodiscard]] LinkCounters link_counters() const override;

  [[nodiscard]] Workers& workers() noexcept { return workers_; }
  [[nodiscard]] CpuMemory& cpu_memory() noexcept { return memory_; }
  /// For a forked child: workers start again with the next stream. Pages of the parent's spans stay with the parent.
  void renew_after_fork() noexcept;
  /// Throws std::bad_alloc.
  [[nodiscard]] PageArena& page_arena(std::size_t page_bytes);

 private:
  const int ordinal_;
  CpuMemory memory_;
  std::mutex mutex_;
  std::map<std::size_t, PageArena> pages_;  ///< Arenas by page size.
  const DeviceProperties properties_;
  Workers workers_;
};

}  // namespace headrace::detail
