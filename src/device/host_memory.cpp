#include "headrace/device/detail/host_memory.hpp"

#include <unistd.h>

#include <algorithm>

#include "device/host_memory_files.hpp"

namespace headrace {

MemoryInfo host_memory() {
  MemoryInfo info = detail::host_memory_of("/proc", "/sys/fs/cgroup");
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {  // also without /proc
    const std::size_t installed = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
    info.total_bytes = std::min(info.total_bytes, installed);
    info.free_bytes = std::min(info.free_bytes, installed);
  }
  return info;
}

}  // namespace headrace
