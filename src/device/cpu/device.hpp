#pragma once

#include <string>

#include "device/backend.hpp"
#include "device/cpu/memory.hpp"
#include "device/cpu/workers.hpp"

namespace headrace::detail {

/// The processors of this process as a device. Several may exist; they share the processors and nothing else.
class CpuDevice final : public DeviceBackend {
 public:
  /// Throws UsageError when HEADRACE_CPU_MEMORY is not a size.
  explicit CpuDevice(int ordinal);

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::cpu; }
  [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] MemoryInfo memory() const override { return memory_.info(); }
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const override;

  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept override;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept override;

  [[nodiscard]] Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept override;
  [[nodiscard]] Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept override;

  [[nodiscard]] Workers& workers() noexcept { return workers_; }
  [[nodiscard]] CpuMemory& cpu_memory() noexcept { return memory_; }

 private:
  const int ordinal_;
  CpuMemory memory_;
  const DeviceProperties properties_;
  Workers workers_;
};

}  // namespace headrace::detail
