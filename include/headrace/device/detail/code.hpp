#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "headrace/device/device.hpp"

namespace headrace {

namespace detail {
class CodeBackend;
}

/// Machine code of kernels that was made at run time, loaded on one device. Kernels with entries from it must not be
/// launched after its destruction.
class DeviceCode {
 public:
  /// @param image a cubin for the device, or PTX, which the driver compiles; copied
  ///
  /// Throws DeviceError: Errc::not_supported on a CPU device, Errc::invalid_argument for an invalid image, Errc::full
  /// while a resident kernel is on any CUDA device, since loading waits for all kernels, and the driver's own code.
  DeviceCode(Device device, std::span<const std::byte> image);
  DeviceCode(DeviceCode&&) noexcept;
  DeviceCode& operator=(DeviceCode&&) noexcept;
  ~DeviceCode();

  /// The entry of a kernel, for Kernel::set_entry(). Throws DeviceError if there is no kernel of that name.
  [[nodiscard]] const void* entry(const char* name) const;

 private:
  std::unique_ptr<detail::CodeBackend> backend_;
};

}  // namespace headrace
