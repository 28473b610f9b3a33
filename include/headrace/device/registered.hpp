#pragma once

// RegisteredMemory locks host memory that somebody else owns into place, so that devices copy it at the link's speed
// and kernels reach it.
//
//     alignas(headrace::RegisteredMemory::kAlignment) static std::byte pages[1 << 20];  // or a mapped file
//     headrace::RegisteredMemory registered(headrace::Device::parse("best"), pages, sizeof(pages));
//     std::printf("kernels reach %zu bytes from %p on\n", registered.bytes(), static_cast<void*>(registered.data()));

#include <cstddef>

#include "headrace/device/device.hpp"

namespace headrace {

/// Page-locks host memory that somebody else owns (a mapped file, a NumPy array), so that kernels of every device reach
/// it while this object lives. Takes about 30 us per MiB, a tenth of allocating pinned memory; on a CPU device nothing.
class RegisteredMemory {
 public:
  /// Address and size must be multiples of this many bytes.
  static constexpr std::size_t kAlignment = 4096;

  /// Locks `bytes` bytes at `data`.
  /// @param data   a multiple of kAlignment, as is `bytes`; must stay allocated.
  ///
  /// Throws UsageError (null, no bytes, alignment) or DeviceError (registered already, more than may be locked, or
  /// memory that this device's kernels would find at another address).
  RegisteredMemory(Device device, void* data, std::size_t bytes);
  RegisteredMemory(RegisteredMemory&& other) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept;
  /// Unlocks the memory. May wait for work on the device.
  ~RegisteredMemory();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }     ///< The registered memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< Its size, in bytes.

 private:
  void reset() noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  detail::DeviceBackend* device_ = nullptr;
};

}  // namespace headrace
