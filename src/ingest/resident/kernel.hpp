#pragma once

#include <cstdint>

#include "headrace/device/kernel.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

inline constexpr std::uint32_t kThreads = 256;

/// (View): all roles. Launch it with kControlBlocks plus the building blocks, of kThreads threads each.
[[nodiscard]] TypedKernel<View> resident_kernel();

}  // namespace headrace::ingest::resident
