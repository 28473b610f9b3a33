#pragma once

#include <cuda_runtime_api.h>

#include "device/backend.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// Enqueues a copy by the copy engine. What lies in several allocations on either side, as copies that were joined may,
/// goes in as many pieces: the driver refuses it as one. The caller has made the device current.
[[nodiscard]] Status engine_copy(const DeviceBackend& device, const Copy& copy, cudaStream_t stream) noexcept;

}  // namespace headrace::detail::cuda
