#include "device/cuda/code.hpp"

#include <new>

#include "device/cuda/error.hpp"

namespace headrace::detail::cuda {

Result<std::unique_ptr<CodeBackend>> CudaCode::load(std::span<const std::byte> image) noexcept {
  cudaLibrary_t library = nullptr;
  const auto status = cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (status != cudaSuccess) return to_error(status);
  std::unique_ptr<CodeBackend> made(new (std::nothrow) CudaCode(library));
  if (!made) {
    static_cast<void>(cudaLibraryUnload(library));
    return Errc::out_of_memory;
  }
  return made;
}

CudaCode::~CudaCode() {
  static_cast<void>(cudaLibraryUnload(library_));  // fails where the process ends, and the driver with it
}

Result<const void*> CudaCode::entry(const char* name) const noexcept {
  cudaKernel_t kernel = nullptr;
  const auto status = cudaLibraryGetKernel(&kernel, library_, name);
  if (status != cudaSuccess) return to_error(status);
  return static_cast<const void*>(kernel);
}

}  // namespace headrace::detail::cuda
