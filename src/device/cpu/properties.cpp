#include "device/cpu/properties.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "device/cpu/resident.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

/// The value of the first line "<key> : <value>" of /proc/cpuinfo, or an empty text.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string{} : line.substr(start);
  }
  return {};
}

std::optional<int> clock_mhz() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (long khz = 0; file >> khz && khz > 0) return static_cast<int>(khz / 1000);
  const double mhz = std::strtod(cpuinfo("cpu MHz").c_str(), nullptr);
  if (mhz > 0) return static_cast<int>(std::lround(mhz));
  return {};
}

/// The NUMA node of all processors of this process, if they share one.
std::optional<int> common_numa_node(const Topology& machine) {
  const auto& all = machine.processors();
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Processor& p) { return p.numa_node == all.front().numa_node; });
  return same ? std::optional(all.front().numa_node) : std::nullopt;
}

}  // namespace

std::size_t machine_memory_bytes() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return std::numeric_limits<std::size_t>::max() / 2;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
}

std::size_t cpu_memory_budget() {
  const char* text = std::getenv("HEADRACE_CPU_MEMORY");
  if (text == nullptr || *text == '\0') return host_memory().total_bytes;
  std::size_t bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("HEADRACE_CPU_MEMORY: {}", error.what()));
  }
  if (bytes == 0) throw UsageError("HEADRACE_CPU_MEMORY must be above 0");
  return bytes;
}

DeviceProperties cpu_properties(std::size_t memory_bytes) {
  DeviceProperties properties;
  properties.name = cpuinfo("model name");
  if (properties.name.empty()) properties.name = "CPU";
  properties.memory_bytes = memory_bytes;
  properties.clock_mhz = clock_mhz();
  properties.blocks_per_multiprocessor = static_cast<int>(ResidentLaunch::kBlocksMax);
  properties.managed_memory = true;
  properties.concurrent_managed_access = true;
  properties.virtual_memory_management = true;
  properties.host_native_atomics = true;
  properties.pageable_memory_access = true;
  properties.host_cores = true;
  properties.host_memory = true;
  try {
    const Topology& machine = Topology::machine();
    properties.multiprocessor_count = static_cast<int>(machine.core_count());
    properties.threads_per_multiprocessor = static_cast<int>(machine.processors().size() / machine.core_count());
    properties.numa_node = common_numa_node(machine);
  } catch (const SystemError&) {
    properties.multiprocessor_count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    properties.threads_per_multiprocessor = 1;
  }
  return properties;
}

}  // namespace headrace::detail
