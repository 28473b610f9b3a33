#include "headrace/device/host_memory.hpp"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include "headrace/base/bytes.hpp"

namespace headrace {

MemoryInfo host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  MemoryInfo info;
  info.total_bytes = pages > 0 && page_bytes > 0
                         ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes)
                         : std::numeric_limits<std::size_t>::max() / 2;
  info.free_bytes = info.total_bytes;
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) info.free_bytes = kib * kKiB;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return info;
}

}  // namespace headrace
