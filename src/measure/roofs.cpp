#include "headrace/measure/detail/roofs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/uploads.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kRoofBytes = 64 * kMiB;
constexpr int kRoofRuns = 5;

/// Median bytes per second of kRoofRuns copies, after a warm-up copy.
double copy_rate(StreamRef stream, std::byte* to, const std::byte* from) {
  std::vector<double> seconds;
  for (int run = 0; run <= kRoofRuns; ++run) {
    const Time start = SteadyClock::now();
    stream.copy(to, from, kRoofBytes).or_throw("measuring a copy");
    stream.wait().or_throw("measuring a copy");
    if (run > 0) seconds.push_back(std::chrono::duration<double>(SteadyClock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRoofRuns / 2, seconds.end());
  return static_cast<double>(kRoofBytes) / seconds[kRoofRuns / 2];
}

/// One device's share of a measurement of copies within memory.
class CopyWithin {
 public:
  CopyWithin(Device device, std::size_t bytes)
      : from_(device, MemoryKind::device, bytes), to_(device, MemoryKind::device, bytes), stream_(device) {
    stream_.fill(from_.data(), kPattern, bytes).or_throw(kDoing);
    stream_.fill(to_.data(), 0, bytes).or_throw(kDoing);
    stream_.wait().or_throw(kDoing);
  }

  void enqueue(std::size_t times) {
    for (std::size_t time = 0; time < times; ++time) {
      stream_.copy(to_.data(), from_.data(), from_.bytes()).or_throw(kDoing);
    }
  }
  void wait() { stream_.wait().or_throw(kDoing); }

  /// Throws DeviceError unless the first and last bytes have arrived.
  void check() {
    const std::size_t some = std::min<std::size_t>(to_.bytes(), 4 * kKiB);
    std::vector<unsigned char> found(2 * some);
    const WaitAtEnd settled(stream_);
    stream_.copy(found.data(), to_.data(), some).or_throw(kDoing);
    stream_.copy(found.data() + some, to_.data() + (to_.bytes() - some), some).or_throw(kDoing);
    wait();
    if (std::all_of(found.begin(), found.end(), [](unsigned char byte) { return byte == kPattern; })) return;
    throw DeviceError(Errc::device_fault, fmt::format("{} did not copy its memory correctly", stream_.device().name()));
  }

 private:
  static constexpr const char* kDoing = "measuring copies within memory";
  static constexpr unsigned char kPattern = 0x5A;

  Buffer from_;
  Buffer to_;
  Stream stream_;  ///< Declared after the memory that it works on, so that it is destroyed first.
};

}  // namespace

std::vector<double> measure_memory_copies(const std::vector<Device>& devices, std::size_t bytes, int runs) {
  if (devices.empty() || bytes == 0 || runs < 1) {
    throw UsageError(fmt::format("measuring copies of {} bytes on {} devices in {} runs: each number must be above 0",
                                 bytes, devices.size(), runs));
  }
  std::vector<CopyWithin> shares;
  for (const Device device : devices) shares.emplace_back(device, bytes);
  const std::size_t least = !devices.front().properties().host_cores ? 4 * kGiB : 128 * kMiB;
  const std::size_t times = std::max<std::size_t>(least / bytes, 1);
  const double moved = 2.0 * static_cast<double>(bytes) * static_cast<double>(times * devices.size());
  std::vector<double> rates;
  for (int run = 0; run <= runs; ++run) {
    const Time start = SteadyClock::now();
    for (CopyWithin& share : shares) share.enqueue(times);
    for (CopyWithin& share : shares) share.wait();
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    if (run > 0) rates.push_back(moved / seconds);
  }
  for (CopyWithin& share : shares) share.check();
  return rates;
}

MemoryRoofs measure_memory_roofs(Device device) {
  const Buffer source(device, MemoryKind::pinned, kRoofBytes);
  const Buffer result(device, MemoryKind::pinned, kRoofBytes);
  const Buffer near(device, MemoryKind::device, kRoofBytes);
  const Buffer far(device, MemoryKind::device, kRoofBytes);
  const Stream stream(device, {.run_in_waiter = true});
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < kRoofBytes / sizeof(std::uint64_t); ++i) source.as<std::uint64_t>()[i] = random();
  std::memset(result.data(), 0, kRoofBytes);

  MemoryRoofs roofs;
  roofs.to_device = copy_rate(stream, near.data(), source.data());
  roofs.on_device = 2 * copy_rate(stream, far.data(), near.data());
  if (!device.properties().host_cores) {
    // A GPU copies kRoofBytes in the time of a few launches, so it needs more bytes.
    constexpr std::size_t kLargeBytes = 512 * kMiB;
    std::vector<double> rates = measure_memory_copies({device}, kLargeBytes, kRoofRuns);
    std::nth_element(rates.begin(), rates.begin() + kRoofRuns / 2, rates.end());
    roofs.on_device = rates[kRoofRuns / 2];
  }
  roofs.from_device = copy_rate(stream, result.data(), far.data());
  if (std::memcmp(source.data(), result.data(), kRoofBytes) != 0) {
    throw DeviceError(Errc::device_fault,
                      fmt::format("{} did not return the bytes that were copied to it", device.name()));
  }
  return roofs;
}

}  // namespace headrace::measure
