#pragma once

#include <cuda_runtime_api.h>

#include "device/backend.hpp"

namespace headrace::detail::cuda {

/// An event of a CUDA device. wait() follows the device's scheduling flag: by default the calling thread spins while
/// the machine has spare processors, which has the lowest latency.
class CudaEvent final : public EventBackend {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EventBackend>> create(int ordinal, EventTiming timing) noexcept;
  ~CudaEvent() override;

  [[nodiscard]] cudaEvent_t native() const noexcept { return event_; }

  [[nodiscard]] Result<bool> ready() noexcept override;
  [[nodiscard]] Status wait() noexcept override;
  [[nodiscard]] Result<Duration> since(EventBackend& earlier) noexcept override;

 private:
  CudaEvent() noexcept = default;
  cudaEvent_t event_ = nullptr;
};

/// `event` if it belongs to a CUDA device, else null.
[[nodiscard]] CudaEvent* as_cuda(EventBackend& event) noexcept;

}  // namespace headrace::detail::cuda
