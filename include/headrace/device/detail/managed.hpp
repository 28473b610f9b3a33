#pragma once

#include <cstddef>

#include "headrace/base/result.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Managed memory (CUDA's unified memory) with its hints: the driver moves pages to the processor that touches them,
/// unless it is told where to keep them. On a CPU device it is plain memory, and hints change nothing.
///
/// A GPU can hang if it touches more managed memory than it has free, so requests beyond that are refused. Use Span for
/// data larger than the device, and place() for pages smaller than a Span's.
class ManagedMemory {
 public:
  /// A page is created where it is first touched or prefetched to. Throws UsageError (bytes 0) or DeviceError
  /// (Errc::not_supported without concurrent managed access, Errc::out_of_memory beyond what is free).
  ManagedMemory(Device device, std::size_t bytes);
  ManagedMemory(ManagedMemory&& other) noexcept;
  ManagedMemory& operator=(ManagedMemory&& other) noexcept;
  ~ManagedMemory();

  [[nodiscard]] Device device() const noexcept { return Device(*device_); }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Asks the driver to keep the bytes from `offset` on at `place`. A range outside the memory is
  /// Errc::invalid_argument.
  [[nodiscard]] Status prefer(std::size_t offset, std::size_t bytes, Place place) noexcept;
  /// Keeps the bytes mapped for the device wherever they lie, so that touching them does not move them.
  [[nodiscard]] Status keep_mapped(std::size_t offset, std::size_t bytes) noexcept;
  /// Moves the bytes, in stream order.
  [[nodiscard]] Status prefetch(StreamRef stream, std::size_t offset, std::size_t bytes, Place place) noexcept;

  /// Keeps each page of `page_bytes` where `placement` puts it, mapped for the device wherever it lies, and moves pages
  /// that lie elsewhere. The last page may be shorter. Pages may be smaller than a Span's, which helps if little of
  /// each large page is used. Returns once all pages are in place. Throws UsageError (not a power of two of at least 4
  /// KiB, or a placement for another number of pages) or DeviceError (Errc::not_supported if host and device alternate
  /// in so many runs of pages that the driver would take minutes).
  void place(StreamRef stream, const Placement& placement, std::size_t page_bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  detail::DeviceBackend* device_ = nullptr;
};

}  // namespace headrace
