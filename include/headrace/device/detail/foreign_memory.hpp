#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"

namespace headrace {

/// Bytes of a handle through which a process shares device memory: the size of cudaIpcMemHandle_t.
inline constexpr std::size_t kMemoryHandleBytes = 64;

/// Device memory that another process has allocated and shares through a handle. It is mapped for the object's
/// lifetime, and remains allocated if that process ends. If the process frees it instead, the result of a copy is
/// undefined, and the device may fail. Any thread; copies of one object take turns.
class ForeignMemory {
 public:
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  /// Unmaps it. If that would wait for a resident kernel, the memory stays mapped until there is none.
  virtual ~ForeignMemory() = default;

  /// Bytes from the address that was shared to the end of its allocation.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  /// Copies `bytes` bytes, from `at` on, to the host and waits for them. Errc::invalid_argument beyond bytes().
  [[nodiscard]] virtual Status read(std::size_t at, void* to, std::size_t bytes) noexcept = 0;
  /// Copies `bytes` bytes from the host to `at` and waits for them. Errc::invalid_argument beyond bytes().
  [[nodiscard]] virtual Status write(std::size_t at, const void* from, std::size_t bytes) noexcept = 0;

 protected:
  ForeignMemory() = default;
};

/// The devices whose memory processes can share through handles, by ordinal.
[[nodiscard]] std::vector<Device> shareable_devices();

/// Maps the memory that a handle stands for; a handle may be opened several times. May wait for work on the device.
/// Errc::invalid_argument if the handle does not stand for memory of `device` that another process shares;
/// Errc::not_supported for a device that cannot share memory; Errc::full while a resident kernel runs, for which
/// mapping memory might wait forever.
[[nodiscard]] Result<std::unique_ptr<ForeignMemory>> open_foreign_memory(Device device,
                                                                         std::span<const std::byte> handle) noexcept;

}  // namespace headrace
