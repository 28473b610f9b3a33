#pragma once

#include "device/backend.hpp"

namespace headrace::detail::cuda {

/// The host's side of cuda::barrier<cuda::thread_scope_system> objects in managed memory.
[[nodiscard]] const BarrierFunctions& barrier_functions() noexcept;

}  // namespace headrace::detail::cuda
