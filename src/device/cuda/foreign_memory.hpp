#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "device/backend.hpp"
#include "headrace/device/detail/foreign_memory.hpp"

namespace headrace::detail::cuda {

class CudaDevice;

/// Memory that another process has exported with cudaIpcGetMemHandle(). CUDA counts how often a process has opened a
/// handle, so several objects may have the same one.
class CudaForeignMemory final : public ForeignMemory {
 public:
  /// As open_foreign_memory().
  [[nodiscard]] static Result<std::unique_ptr<ForeignMemory>> open(CudaDevice& device,
                                                                   std::span<const std::byte> handle) noexcept;
  ~CudaForeignMemory() override;

  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] Status read(std::size_t at, void* to, std::size_t bytes) noexcept override;
  [[nodiscard]] Status write(std::size_t at, const void* from, std::size_t bytes) noexcept override;

 private:
  CudaForeignMemory(CudaDevice& device, void* data) noexcept;

  /// Finds the size, and refuses memory of another device.
  [[nodiscard]] Status measure() noexcept;
  [[nodiscard]] bool holds(std::size_t at, std::size_t bytes) const noexcept;
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes) noexcept;

  CudaDevice& device_;
  std::byte* const data_;
  std::size_t bytes_ = 0;
  std::mutex mutex_;  ///< Held during a copy, so that it waits for no other.
  std::unique_ptr<StreamBackend> stream_;
};

}  // namespace headrace::detail::cuda
