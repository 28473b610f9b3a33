#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

#include "device/backend.hpp"

namespace headrace::detail::cuda {

/// Counts the resident kernels on all CUDA devices of the process. Loading and unloading code wait for every kernel on
/// every device, so neither happens while there is a resident kernel.
class ResidentCount {
 public:
  /// Waits until no code is being loaded or unloaded.
  static void starts() noexcept;
  static void ends() noexcept;
};

/// A library of the CUDA runtime. Its kernels belong to no context: they run on every device of their architecture.
class CudaCode final : public CodeBackend {
 public:
  /// The device is current. Errc::full while any device has a resident kernel.
  [[nodiscard]] static Result<std::unique_ptr<CodeBackend>> load(std::span<const std::byte> image) noexcept;
  CudaCode(const CudaCode&) = delete;
  CudaCode& operator=(const CudaCode&) = delete;
  ~CudaCode() override;

  /// A cudaKernel_t, which the runtime accepts in place of a __global__ function's address.
  [[nodiscard]] Result<const void*> entry(const char* name) const noexcept override;

 private:
  explicit CudaCode(cudaLibrary_t library) noexcept : library_(library) {}

  cudaLibrary_t library_;
};

}  // namespace headrace::detail::cuda
