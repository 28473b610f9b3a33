#pragma once

#include <cstddef>
#include <memory>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

/// What a kind of device implements. The public classes are thin views of these; their comments give the contracts.
namespace headrace::detail {

class EventBackend {
 public:
  virtual ~EventBackend() = default;
  [[nodiscard]] virtual Result<bool> ready() noexcept = 0;
  [[nodiscard]] virtual Status wait() noexcept = 0;
  [[nodiscard]] virtual Result<Duration> since(EventBackend& earlier) noexcept = 0;
};

class StreamBackend {
 public:
  virtual ~StreamBackend() = default;
  [[nodiscard]] virtual DeviceBackend& device() noexcept = 0;
  [[nodiscard]] virtual Status copy(void* to, const void* from, std::size_t bytes) noexcept = 0;
  [[nodiscard]] virtual Status copy_many(std::span<const Copy> copies) noexcept = 0;
  [[nodiscard]] virtual Status fill(void* to, unsigned char value, std::size_t bytes) noexcept = 0;
  [[nodiscard]] virtual Status launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept = 0;
  [[nodiscard]] virtual Status launch_resident(const Kernel& kernel, LaunchShape shape,
                                               void* const* arguments) noexcept = 0;
  [[nodiscard]] virtual Status call(void (*function)(void*), void* argument) noexcept = 0;
  [[nodiscard]] virtual Status record(EventBackend& event) noexcept = 0;
  [[nodiscard]] virtual Status wait_for(EventBackend& event) noexcept = 0;
  [[nodiscard]] virtual Result<bool> ready() noexcept = 0;
  [[nodiscard]] virtual Status wait() noexcept = 0;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  [[nodiscard]] virtual DeviceKind kind() const noexcept = 0;
  [[nodiscard]] virtual int ordinal() const noexcept = 0;
  [[nodiscard]] virtual const DeviceProperties& properties() const noexcept = 0;
  [[nodiscard]] virtual MemoryInfo memory() const = 0;
  [[nodiscard]] virtual std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const = 0;

  /// `stream` is null unless kind is stream_ordered. `bytes` > 0.
  [[nodiscard]] virtual Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept = 0;
  virtual void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept = 0;
};

}  // namespace headrace::detail
