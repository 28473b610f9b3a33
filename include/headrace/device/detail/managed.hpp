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
/// data larger than the device there is Span, and for pages smaller than a Span's there is place().
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

  /// Has each page of `page_bytes` stay where `placement` puts it, mapped for the device wherever it lies, and moves
  /// what lies elsewhere; the last page may be shorter. Pages may be smaller than a Span's, which helps where little of
  /// each large page is wanted. Returns once they are there. Throws UsageError (no power of two of 4 KiB at least, or a
  /// placement for another number of pages) or DeviceError (Errc::not_supported where so many runs of pages lie in turn
  /// on host and device that the driver would take minutes).
  void place(StreamRef stream, const Placement& placement, std::size_t page_bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  detail::DeviceBackend* device_ = nullptr;
};

}  // namespace headrace
