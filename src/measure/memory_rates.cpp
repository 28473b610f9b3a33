#include "measure/memory_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/managed.hpp"
#include "headrace/device/span.hpp"
#include "measure/access_bench.hpp"

namespace headrace::measure {

namespace {

constexpr int kRateRuns = 3;
constexpr std::size_t kPagesToMap = 8;
constexpr std::size_t kFaultPages = 16;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median seconds of kRateRuns calls, after a warm-up call.
template <class Work>
double median_seconds(Work work) {
  std::vector<double> times;
  for (int run = 0; run <= kRateRuns; ++run) {
    const double time = work();
    if (run > 0) times.push_back(time);
  }
  return median(times);
}

template <class Work>
double host_seconds(Work work) {
  const Time start = SteadyClock::now();
  work();
  return seconds(SteadyClock::now() - start);
}

/// Bytes per second of one pattern and operation over `data`.
double access_rate(AccessBench& bench, AccessPattern pattern, AccessOperation operation, const Buffer& data) {
  const AccessWork work{.pattern = pattern, .operation = operation};
  const std::size_t pages = data.bytes() / kPageBytes;
  std::uint32_t run = 0;
  const double time = median_seconds([&] { return seconds(bench.time(work, data.data(), pages, ++run)); });
  return static_cast<double>(data.bytes()) / time;
}

/// The rates of all operations over `data`. Verifies that the data was read.
OperationRates operation_rates(AccessBench& bench, AccessPattern pattern, const Buffer& data) {
  const std::size_t pages = data.bytes() / kPageBytes;
  const AccessWork reading{.pattern = pattern, .operation = AccessOperation::read};
  OperationRates rates;
  bench.fill(data.data(), pages);
  rates.read = access_rate(bench, pattern, AccessOperation::read, data);
  if (bench.sum() != bench.expected_sum(reading, pages)) {
    throw DeviceError(Errc::device_fault,
                      fmt::format("{} read bytes that differ from those in memory", bench.device().name()));
  }
  rates.write = access_rate(bench, pattern, AccessOperation::write, data);
  rates.read_modify_write = access_rate(bench, pattern, AccessOperation::read_modify_write, data);
  return rates;
}

/// Bytes per second of first touches of managed memory that the host has just written.
double fault_rate(AccessBench& bench, AccessPattern pattern) {
  const ManagedMemory data(bench.device(), kFaultPages * kPageBytes);
  std::memset(data.data(), 1, data.bytes());
  const AccessWork work{.pattern = pattern, .operation = AccessOperation::read};
  return static_cast<double>(data.bytes()) / seconds(bench.time(work, data.data(), kFaultPages, 1));
}

void measure_faults(AccessBench& bench, MemoryRates& rates) {
  if (rates.one_memory) {
    rates.faults = {
        .grid_stride = rates.device.read, .block_stride = rates.device.read, .random = rates.device_random.read};
    return;
  }
  if (!rates.managed) return;
  rates.faults = {.grid_stride = fault_rate(bench, AccessPattern::grid_stride),
                  .block_stride = fault_rate(bench, AccessPattern::block_stride),
                  .random = fault_rate(bench, AccessPattern::random_warp)};
}

void measure_copies(StreamRef stream, const Buffer& host, const Buffer& near, MemoryRates& rates) {
  const auto bytes = static_cast<double>(host.bytes());
  rates.prefetch = bytes / median_seconds([&] {
                     return host_seconds([&] {
                       stream.copy(near.data(), host.data(), host.bytes()).or_throw("measuring a copy to the device");
                       stream.wait().or_throw("measuring a copy to the device");
                     });
                   });
  const std::size_t half = host.bytes() / 2;
  rates.host_copy = bytes / 2 / median_seconds([&] {
                      return host_seconds([&] { std::memcpy(host.data() + half, host.data(), half); });
                    });
}

/// Measures the costs of pages. A device without spans keeps the figures of the table.
void measure_pages(StreamRef stream, MemoryRates& rates) {
  const Device device = stream.device();
  const auto pages = static_cast<double>(kPagesToMap);
  try {
    rates.device_page =
        host_seconds([&] { const Span near(device, kPagesToMap * kPageBytes, Placement::all(Place::on(device))); }) /
        pages;
    const Time start = SteadyClock::now();
    Span span(device, kPagesToMap * kPageBytes, Placement::all(Place::host()));
    rates.host_page = seconds(SteadyClock::now() - start) / pages;
    const PageRange all{0, kPagesToMap};
    span.move(stream, all, Place::on(device));  // allocates the pages; later moves reuse the spare ones
    span.move(stream, all, Place::host());
    rates.page_move = host_seconds([&] { span.move(stream, all, Place::on(device)); }) / pages;
  } catch (const DeviceError& error) {
    if (error.code() != Errc::not_supported) throw;
  }
}

}  // namespace

MemoryRates measure_memory_rates(Device device) {
  MemoryRates rates = memory_rates_of(device);
  // On a GPU, use so much data that neither caches nor launch times matter.
  const std::size_t bytes = device.properties().host_cores ? 32 * kMiB : kGiB;
  AccessBench bench(device);
  const Buffer near(device, MemoryKind::device, bytes);
  const Buffer host(device, MemoryKind::mapped, bytes);
  rates.device = operation_rates(bench, AccessPattern::grid_stride, near);
  rates.device_random = operation_rates(bench, AccessPattern::random_warp, near);
  rates.link = rates.one_memory ? rates.device : operation_rates(bench, AccessPattern::grid_stride, host);
  rates.link_random = rates.one_memory ? rates.device_random : operation_rates(bench, AccessPattern::random_warp, host);
  if (rates.one_memory) std::memset(host.data(), 0, bytes);  // so that the first touch of its pages is not timed
  rates.cache = std::max(rates.cache, rates.device.read);
  measure_copies(bench.stream(), host, near, rates);
  measure_faults(bench, rates);
  measure_pages(bench.stream(), rates);
  return rates;
}

}  // namespace headrace::measure
