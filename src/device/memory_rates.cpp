#include "headrace/device/detail/memory_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/nearest.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr double kGiBPerSecond = 1024.0 * 1024.0 * 1024.0;
constexpr double kWarpBytes = 128;

/// One NVIDIA H100 80GB HBM3 on PCIe 5 x16; figures are measured unless stated otherwise. Not measured: kernels that
/// write to host memory (assumed equal to reads), reads from the cache (assumed twice the memory's rate), and copies
/// within host memory.
MemoryRates h100() {
  MemoryRates rates;
  rates.name = "H100";
  rates.device = {.read = 2.91e12, .write = 2.91e12, .read_modify_write = 2.91e12 / 2};  // bytes read and written
  // NVIDIA 2021's published microbenchmark, prefetched once: 1,226 GiB/s random.
  const double random = 1226 * kGiBPerSecond;
  rates.device_random = {.read = random, .write = random, .read_modify_write = random / 2};
  rates.link = {
      .read = 49.9e9, .write = 49.9e9, .read_modify_write = 39.7e9};  // read_modify_write: each direction, both at once
  // The same microbenchmark, zero-copy: 24.9 GiB/s random.
  const double link_random = 24.9 * kGiBPerSecond;
  rates.link_random = {.read = link_random, .write = link_random, .read_modify_write = link_random};
  rates.faults = {
      .grid_stride = 7.2 * kGiBPerSecond, .block_stride = 9.5 * kGiBPerSecond, .random = 5.5 * kGiBPerSecond};
  rates.prefetch = 55.2e9;
  rates.host_copy = 10e9;
  rates.device_page = 47e-3 / 1024;  // a range of 2 GiB mapped in 47 ms, on an H200
  rates.host_page = 812e-3 / 1024;   // the same of host pages
  rates.page_move = rates.device_page + static_cast<double>(2 * kMiB) / rates.prefetch;
  rates.device_latency = 0.33e-6;                      // pointer chase of 660 cycles, on an H200
  rates.link_latency = 1.20e-6;                        // nvbandwidth 0.8
  rates.in_flight_bytes = 132 * 64 * kWarpBytes;       // 132 multiprocessors of 64 warps: NVIDIA, H100 white paper
  rates.cache_bytes = static_cast<double>(50 * kMiB);  // the same
  rates.cache = 2 * rates.device.read;
  rates.memory_bytes = 80'000'000'000;
  rates.managed = true;
  rates.managed_bytes = rates.memory_bytes;
  return rates;
}

/// One NVIDIA H200: measured figures, and those of the H100 for the rest.
MemoryRates h200() {
  MemoryRates rates = h100();
  rates.name = "H200";
  // A range of 2 GiB read by one kernel: grid stride 4,346, random 840, all on the host 51 and 7.8 GB/s.
  rates.device = {.read = 4.35e12, .write = 4.35e12, .read_modify_write = 4.35e12 / 2};
  rates.device_random = {.read = 840e9, .write = 840e9, .read_modify_write = 840e9 / 2};
  rates.link = {.read = 51e9, .write = 51e9, .read_modify_write = 39.7e9};
  // With every third page on the host, the total is 72 GB/s, so its 683 MiB come at 24 GB/s; all 2 GiB come at 7.8
  // GB/s. With a reach of 1 GiB, the half beyond it comes at 4.65 GB/s.
  rates.link_random = {.read = 24e9, .write = 24e9, .read_modify_write = 24e9};
  rates.link_reach_bytes = static_cast<double>(kGiB);
  rates.link_beyond_reach = 4.65 / 24;
  rates.cache = 2 * rates.device.read;
  rates.memory_bytes = 141'000'000'000;
  rates.managed_bytes = rates.memory_bytes;
  return rates;
}

/// A server's processor as a device: device and host memory are the same memory. Round figures; measure_memory_rates()
/// measures those of a machine.
MemoryRates cpu() {
  MemoryRates rates;
  rates.name = "CPU";
  rates.device = {.read = 10e9, .write = 8e9, .read_modify_write = 7e9};
  rates.device_random = {.read = 4e9, .write = 4e9, .read_modify_write = 3e9};
  rates.link = rates.device;
  rates.link_random = rates.device_random;
  rates.faults = {.grid_stride = 4e9, .block_stride = 4e9, .random = 4e9};
  rates.prefetch = 5e9;
  rates.host_copy = 5e9;
  rates.device_page = 200e-6;
  rates.host_page = 200e-6;
  rates.page_move = 600e-6;
  rates.device_latency = 0.1e-6;
  rates.link_latency = 0.1e-6;
  rates.in_flight_bytes = 64 * kWarpBytes;
  rates.cache_bytes = static_cast<double>(2 * kMiB);
  rates.cache = 2 * rates.device.read;
  rates.one_memory = true;
  rates.managed = true;
  return rates;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Another name of a row: the driver's name for exactly the card with these rates. Other cards with the same chip (an
/// H100 PCIe, a GH200) have different memory and links, although their names start or end alike.
struct OtherName {
  std::string_view name;
  std::string_view row;
};
constexpr std::array<OtherName, 6> kOtherNames{{{"NVIDIA H100 80GB HBM3", "H100"},
                                                {"H100 SXM", "H100"},
                                                {"H100 SXM5", "H100"},
                                                {"NVIDIA H100", "H100"},
                                                {"NVIDIA H200", "H200"},
                                                {"H200 SXM", "H200"}}};

const MemoryRates* look_up(std::string_view name) {
  const std::string wanted = lower(name);
  const auto other = std::ranges::find_if(kOtherNames, [&](const OtherName& one) { return lower(one.name) == wanted; });
  const std::string row_name = other == kOtherNames.end() ? wanted : lower(other->row);
  const auto& rows = known_memory_rates();
  const auto row = std::ranges::find_if(rows, [&](const MemoryRates& one) { return lower(one.name) == row_name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

double OperationRates::of(AccessOperation operation) const noexcept {
  switch (operation) {
    case AccessOperation::read: return read;
    case AccessOperation::write: return write;
    case AccessOperation::read_modify_write: break;
  }
  return read_modify_write;
}

const std::vector<MemoryRates>& known_memory_rates() {
  static const std::vector<MemoryRates> rows{h100(), h200(), cpu()};
  return rows;
}

const MemoryRates& find_memory_rates(std::string_view name) {
  if (const MemoryRates* row = look_up(name)) return *row;
  std::vector<std::string> names;
  for (const MemoryRates& row : known_memory_rates()) names.push_back(row.name);
  throw UsageError(fmt::format("no memory rates are known for '{}'{}", name, offer_names(name, names)),
                   Errc::not_found);
}

MemoryRates memory_rates_of(Device device) {
  const bool on_cpu = device.properties().host_cores;
  const MemoryRates* row = on_cpu ? nullptr : look_up(device.properties().name);
  MemoryRates rates = row != nullptr ? *row : find_memory_rates(on_cpu ? "CPU" : "H100");
  rates.name = device.properties().name;
  rates.managed = on_cpu || device.properties().concurrent_managed_access;
  rates.memory_bytes = device.memory().free_bytes;
  rates.managed_bytes = rates.memory_bytes;
  return rates;
}

}  // namespace headrace
