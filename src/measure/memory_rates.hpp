#pragma once

#include "headrace/device/detail/memory_rates.hpp"

namespace headrace::measure {

/// What the memory of a device and of its host does for kernels, measured now: in order and at random, reading,
/// writing and both, in device memory and in mapped host memory; the copy engine; page faults where there is managed
/// memory; taking and moving pages. Medians of several runs over data that does not fit in a cache. What is not
/// measured (latency, translation, cache) is that of memory_rates_of(). Takes some tenths of a second. Throws
/// DeviceError when there is no room for 64 MiB on a CPU device, or 256 MiB on a CUDA device, twice.
[[nodiscard]] MemoryRates measure_memory_rates(Device device);

}  // namespace headrace::measure
