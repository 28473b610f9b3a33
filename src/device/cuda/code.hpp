#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

#include "device/backend.hpp"

namespace headrace::detail::cuda {

/// Counts the resident kernels on all CUDA devices of the process. Loading and unloading code wait for every kernel on
/// every device, so neither is done while a resident kernel is there.
class ResidentCount {
 public:
  /// Waits until no code is being loaded or unloaded.
  static void starts() noexcept;
  static void ends() noexcept;
};

/// A library of the CUDA runtime. Its kernels belong to no context: every device whose architecture they are for runs
/// them.
class CudaCode final : public CodeBackend {
 public:
  /// The device is current. Errc::full while a resident kernel is on any device.
  [[nodiscard]] static Result<std::unique_ptr<CodeBackend>> load(std::span<const std::byte> image) noexcept;
  CudaCode(const CudaCode&) = delete;
  CudaCode& operator=(const CudaCode&) = delete;
  ~CudaCode() override;

  /// A cudaKernel_t, which the runtime's calls take in the place of a __global__ function's address.
  [[nodiscard]] Result<const void*> entry(const char* name) const noexcept override;

 private:
  explicit CudaCode(cudaLibrary_t library) noexcept : library_(library) {}

  cudaLibrary_t library_;
};

}  // namespace headrace::detail::cuda
