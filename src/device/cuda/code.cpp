#include "device/cuda/code.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "device/cuda/error.hpp"

namespace headrace::detail::cuda {

namespace {

struct Libraries {
  std::mutex mutex;
  std::atomic<int> resident_kernels{0};  ///< Increases only under the mutex.
  std::vector<cudaLibrary_t> retired;    ///< Under the mutex; unloaded once there is no resident kernel.

  /// The mutex is held and there is no resident kernel.
  void unload_retired() noexcept {
    for (const cudaLibrary_t library : retired) {
      static_cast<void>(cudaLibraryUnload(library));  // fails if the process, and the driver with it, is ending
    }
    retired.clear();
  }
};

/// Never destroyed, because engines may be destroyed later than static objects.
[[nodiscard]] Libraries& libraries() noexcept {
  static Libraries& all = *new Libraries;
  return all;
}

}  // namespace

void ResidentCount::starts() noexcept {
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  all.resident_kernels.fetch_add(1, std::memory_order_acq_rel);
}

void ResidentCount::ends() noexcept { libraries().resident_kernels.fetch_sub(1, std::memory_order_acq_rel); }

Result<std::unique_ptr<CodeBackend>> CudaCode::load(std::span<const std::byte> image) noexcept {
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  if (all.resident_kernels.load(std::memory_order_acquire) > 0) return Errc::full;
  all.unload_retired();
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
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  try {
    all.retired.push_back(library_);
  } catch (const std::bad_alloc&) {  // the library stays loaded, which is better than waiting forever
    return;
  }
  if (all.resident_kernels.load(std::memory_order_acquire) == 0) all.unload_retired();
}

Result<const void*> CudaCode::entry(const char* name) const noexcept {
  cudaKernel_t kernel = nullptr;
  const auto status = cudaLibraryGetKernel(&kernel, library_, name);
  if (status != cudaSuccess) return to_error(status);
  return static_cast<const void*>(kernel);
}

}  // namespace headrace::detail::cuda
