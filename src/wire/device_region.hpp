#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/device/detail/foreign_memory.hpp"
#include "headrace/device/device.hpp"
#include "wire/shared_region.hpp"

namespace headrace::wire {

/// The beginning of memory on a CUDA device that a client shares through a handle. Tensors pass through the server's
/// own memory, like those of messages, and are checked there.
class DeviceRegion final : public SharedRegion {
 public:
  /// @param handle  a cudaIpcMemHandle_t
  /// Throws RequestError if the handle cannot be opened, or its memory has fewer than `bytes` bytes.
  DeviceRegion(std::string name, Device device, std::span<const std::byte> handle, std::uint64_t bytes);

  /// The device's number among those of its kind.
  [[nodiscard]] int device_id() const noexcept { return device_.ordinal(); }

  /// Throws RequestError if the device fails, or memory for rows that are apart runs out.
  void read(std::uint64_t at, const Rows<std::byte>& rows) const override;
  /// Throws RequestError in the same cases.
  void write(std::uint64_t at, const Rows<const std::byte>& rows) const override;

 private:
  /// Throws RequestError for the failure of a copy.
  void require(Status copied) const;

  Device device_;
  std::unique_ptr<ForeignMemory> memory_;
};

}  // namespace headrace::wire
