#include "device/cuda/event.hpp"

#include <new>
#include <typeinfo>

#include "device/cuda/current_device.hpp"
#include "device/cuda/error.hpp"

namespace headrace::detail::cuda {

Result<std::unique_ptr<EventBackend>> CudaEvent::create(int ordinal, EventTiming timing) noexcept {
  std::unique_ptr<CudaEvent> event(new (std::nothrow) CudaEvent);
  if (event == nullptr) return Errc::out_of_memory;
  const CurrentDevice scope(ordinal);
  const unsigned flags = timing == EventTiming::on ? cudaEventDefault : cudaEventDisableTiming;
  if (const auto status = cudaEventCreateWithFlags(&event->event_, flags); status != cudaSuccess) {
    return to_error(status);
  }
  return std::unique_ptr<EventBackend>(std::move(event));
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) static_cast<void>(to_status(cudaEventDestroy(event_)));
}

Result<bool> CudaEvent::ready() noexcept { return to_ready(cudaEventQuery(event_)); }

Status CudaEvent::wait() noexcept { return to_status(cudaEventSynchronize(event_)); }

Result<Duration> CudaEvent::since(EventBackend& earlier) noexcept {
  const CudaEvent* const start = as_cuda(earlier);
  if (start == nullptr) return Errc::invalid_argument;
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, start->event_, event_);
  if (status == cudaErrorNotReady) return Error{Errc::invalid_argument, to_error(status).native};
  if (status != cudaSuccess) return to_error(status);  // no timing, or never recorded: CUDA calls it an invalid handle
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(milliseconds));
}

CudaEvent* as_cuda(EventBackend& event) noexcept {
  // The class is final, so comparing type ids is enough and costs less than a dynamic_cast.
  return typeid(event) == typeid(CudaEvent) ? static_cast<CudaEvent*>(&event) : nullptr;
}

}  // namespace headrace::detail::cuda
