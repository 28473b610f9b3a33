#pragma once

#include <cuda_runtime_api.h>

#include "device/backend.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// Enqueues a copy by the copy engine. A copy that spans several allocations on either side, as merged copies may, is
/// split, because the driver refuses it as one. The caller has made the device current.
[[nodiscard]] Status engine_copy(const DeviceBackend& device, const Copy& copy, cudaStream_t stream) noexcept;

}  // namespace headrace::detail::cuda
