#pragma once

#include <cstddef>

#include "headrace/base/result.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Managed memory (CUDA's unified memory) with its hints: pages that the driver moves to whoever touches them, unless
/// it is told where they are to stay. On a CPU device plain memory, where hints change nothing.
///
/// A GPU can hang when more managed memory is touched than the card has free, so more than is free is refused. For
/// data larger than the device there is Span.
class ManagedMemory {
 public:
  /// A page comes into being where it is first touched, or prefetched to. Throws UsageError (bytes 0) or DeviceError
  /// (Errc::not_supported without concurrent managed access, Errc::out_of_memory beyond what is free).
  ManagedMemory(Device device, std::size_t bytes);
  ManagedMemory(ManagedMemory&& other) noexcept;
  ManagedMemory& operator=(ManagedMemory&& other) noexcept;
  ~ManagedMemory();

  [[nodiscard]] Device device() const noexcept { return Device(*device_); }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The bytes from `offset` are to stay at `place`. A range outside the memory is Errc::invalid_argument.
  [[nodiscard]] Status prefer(std::size_t offset, std::size_t bytes, Place place) noexcept;
  /// Keeps them mapped for the device wherever they lie, so that touching them does not move them.
  [[nodiscard]] Status keep_mapped(std::size_t offset, std::size_t bytes) noexcept;
  /// Moves them, in stream order.
  [[nodiscard]] Status prefetch(StreamRef stream, std::size_t offset, std::size_t bytes, Place place) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  detail::DeviceBackend* device_ = nullptr;
};

}  // namespace headrace
