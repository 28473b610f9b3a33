#pragma once

#include "fetch/program/program.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::fetch {

/// Enqueues the scan of `work` on every core or multiprocessor of the device.
[[nodiscard]] Status enqueue_scan(StreamRef stream, const ScanWork& work) noexcept;

}  // namespace headrace::fetch
