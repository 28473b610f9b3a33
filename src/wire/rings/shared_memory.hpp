#pragma once

#include <cstddef>
#include <utility>

#include "base/file_descriptor.hpp"

namespace headrace::wire::rings {

/// A mapping of memory that two processes share. Forked children do not inherit it.
class SharedMemory {
 public:
  SharedMemory() noexcept = default;
  /// Maps the first `bytes` of `file`. Throws SystemError.
  SharedMemory(const FileDescriptor& file, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  [[nodiscard]] std::byte* begin() const noexcept { return begin_; }
  /// Drops the mapping without unmapping it: this process inherited the object by fork(), but not the mapping.
  void forget() noexcept { begin_ = nullptr; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Anonymous zero-filled memory that no holder of the descriptor can shrink or grow. It is freed once all processes
/// have closed it, however they end, and no process can cause a SIGBUS in another. Throws SystemError.
[[nodiscard]] FileDescriptor make_sealed_memory(std::size_t bytes);

/// Whether `file` has `bytes` bytes and cannot be cut short.
[[nodiscard]] bool is_sealed_memory(const FileDescriptor& file, std::size_t bytes) noexcept;

}  // namespace headrace::wire::rings
