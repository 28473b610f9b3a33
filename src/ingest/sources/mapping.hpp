#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

namespace headrace::ingest {

/// Owns mapped memory.
class Mapping {
 public:
  Mapping() noexcept = default;
  /// Takes the result of mmap(); valid() says whether the call succeeded.
  Mapping(void* data, std::size_t bytes) noexcept : data_(data == MAP_FAILED ? nullptr : data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  [[nodiscard]] bool valid() const noexcept { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace headrace::ingest
