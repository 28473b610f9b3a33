#pragma once

#include <cuda_runtime_api.h>

namespace headrace::detail::cuda {

/// Makes a device the calling thread's current one for as long as the scope lasts.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) noexcept {
    // Reading is a thread-local load. Setting costs more and is needed only with several devices.
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = ordinal;
    if (before_ == ordinal) return;
    changed_ = true;
    static_cast<void>(cudaSetDevice(ordinal));  // the call that the scope was made for reports a failure
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
