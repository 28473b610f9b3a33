#pragma once

#include <cstddef>
#include <variant>

#include "headrace/device/buffer.hpp"
#include "headrace/device/span.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/measure/links.hpp"

namespace headrace::measure {

/// Memory of one end of a link.
class LinkEnd {
 public:
  /// @param user    the device that accesses it
  /// @param owner   the device on which it lies; equal to `user` for host memory
  /// Throws DeviceError if there is no such memory.
  LinkEnd(Device user, Device owner, LinkMemory memory, bool on_host, std::size_t bytes);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The device whose kernels fill and verify it, unless the host can.
  [[nodiscard]] Device owner() const noexcept { return owner_; }
  [[nodiscard]] bool on_host() const noexcept { return on_host_; }

  /// Fills it with the pattern of `seed`, and returns when that is done.
  void fill(std::uint64_t seed) const;
  /// Overwrites the first `bytes` bytes with a value that is no pattern.
  void spoil(std::size_t bytes) const;
  /// Whether the first `bytes` bytes are the pattern of `seed`.
  [[nodiscard]] bool holds(std::size_t bytes, std::uint64_t seed) const;

 private:
  /// Registered pageable memory. The registration is destroyed first.
  struct Registered {
    Buffer memory;
    RegisteredMemory registration;
  };

  Device owner_;
  bool on_host_;
  std::size_t bytes_;
  std::variant<Buffer, Registered, Span> memory_;
  std::byte* data_ = nullptr;
};

}  // namespace headrace::measure
