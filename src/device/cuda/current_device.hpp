#pragma once

#include <cuda_runtime_api.h>

namespace headrace::detail::cuda {

/// Makes a device the calling thread's current one for as long as the scope lasts.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) noexcept {
    // Reading is a thread-local load; setting costs more and is only needed where there are several devices.
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = ordinal;
    if (before_ == ordinal) return;
    changed_ = true;
    static_cast<void>(cudaSetDevice(ordinal));  // a failure shows in the call that the scope was made for
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace headrace::detail::cuda
