#include "headrace/measure/roofs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "headrace/base/bytes.hpp"
#include "headrace/base/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kBytes = 64 * kMiB;
constexpr int kRuns = 5;

/// Bytes per second of the median of kRuns copies, after one that warms up.
double copy_rate(StreamRef stream, std::byte* to, const std::byte* from) {
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    const Time start = SteadyClock::now();
    stream.copy(to, from, kBytes).or_throw("measuring a copy");
    stream.wait().or_throw("measuring a copy");
    if (run > 0) seconds.push_back(std::chrono::duration<double>(SteadyClock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return static_cast<double>(kBytes) / seconds[kRuns / 2];
}

}  // namespace

MemoryRoofs measure_memory_roofs(Device device) {
  const Stream stream(device, {.run_in_waiter = true});
  const Buffer source(device, MemoryKind::pinned, kBytes);
  const Buffer result(device, MemoryKind::pinned, kBytes);
  const Buffer near(device, MemoryKind::device, kBytes);
  const Buffer far(device, MemoryKind::device, kBytes);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < kBytes / sizeof(std::uint64_t); ++i) source.as<std::uint64_t>()[i] = random();
  std::memset(result.data(), 0, kBytes);

  MemoryRoofs roofs;
  roofs.to_device = copy_rate(stream, near.data(), source.data());
  roofs.on_device = 2 * copy_rate(stream, far.data(), near.data());
  roofs.from_device = copy_rate(stream, result.data(), far.data());
  if (std::memcmp(source.data(), result.data(), kBytes) != 0) {
    throw DeviceError(Errc::device_fault,
                      fmt::format("{} did not return the bytes that were copied to it", device.name()));
  }
  return roofs;
}

}  // namespace headrace::measure
