#include "device/cpu/page_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "device/cpu/device.hpp"
#include "device/cpu/page_arena.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

namespace {

/// Set in the handle of a page that is its own file; the other bits are the descriptor. Such a page without a source
/// belongs to another process.
constexpr std::uint64_t kOwnFile = std::uint64_t{1} << 63;

bool is_own_file(Page page) noexcept { return (page.handle & kOwnFile) != 0; }
int file_of(Page page) noexcept { return static_cast<int>(page.handle & ~kOwnFile); }
Page own_file(int file, PageArena* source, std::size_t bytes) noexcept {
  return {kOwnFile | static_cast<std::uint64_t>(file), source, bytes};
}

int protection(Right right) noexcept {
  switch (right) {
    case Right::none: return PROT_NONE;
    case Right::read: return PROT_READ;
    case Right::read_write: return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

struct HostArenas {
  std::mutex mutex;
  std::map<std::pair<std::optional<int>, std::size_t>, PageArena*> arenas;
};

/// One arena per node and page size, never destroyed, because spans may outlive it.
PageArena& host_arena(std::optional<int> numa_node, std::size_t page_bytes) {
  static HostArenas& host = make_process_wide<HostArenas>();
  const std::lock_guard lock(host.mutex);
  PageArena*& arena = host.arenas[{numa_node, page_bytes}];
  if (arena == nullptr) arena = new PageArena(nullptr, page_bytes, numa_node);
  return *arena;
}

PageArena& arena_of(Place place, PageOptions options) {
  if (place.is_host()) return host_arena(options.numa_node, options.bytes);
  return static_cast<CpuDevice&>(place.device()->backend()).page_arena(options.bytes);
}

/// Address space without memory behind it.
void* reserve_addresses(void* at, std::size_t bytes, int flags) noexcept {
  return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

std::string CpuPageMemory::absence(Place /*place*/) { return {}; }
bool CpuPageMemory::reaches(Accessor /*who*/, Place /*place*/) { return true; }

Result<std::byte*> CpuPageMemory::reserve(std::size_t bytes) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  // Reserve one page more than needed and trim both ends, because mmap() aligns to small pages only.
  void* const mapped = reserve_addresses(nullptr, bytes + kPageBytes, 0);
  if (mapped == MAP_FAILED) return system_error();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before =
      align_up(reinterpret_cast<std::uintptr_t>(begin), kPageBytes) - reinterpret_cast<std::uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  if (before < kPageBytes) munmap(begin + before + bytes, kPageBytes - before);
  return begin + before;
}

void CpuPageMemory::release(std::byte* at, std::size_t bytes) noexcept { munmap(at, bytes); }

Result<Page> CpuPageMemory::create(Place place, PageOptions options) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  PageArena* arena = nullptr;
  try {
    arena = &arena_of(place, options);
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  if (options.shareable && !place.is_host()) {
    const auto file = arena->take_file();
    if (!file) return file.error();
    return own_file(*file, arena, options.bytes);
  }
  const auto number = arena->take();
  if (!number) return number.error();
  return Page{*number, arena, options.bytes};
}

void CpuPageMemory::destroy(Page page) noexcept {
  auto* const arena = static_cast<PageArena*>(page.source);
  if (!is_own_file(page)) {
    arena->give(page.handle);
  } else if (arena != nullptr) {
    arena->give_file(file_of(page));
  } else {
    close(file_of(page));
  }
}

Status CpuPageMemory::map(std::byte* at, Page page) noexcept {
  if (is_own_file(page)) return map_file_page(at, file_of(page), 0, page.bytes);
  return static_cast<PageArena*>(page.source)->map(at, page.handle);
}

Status CpuPageMemory::unmap(std::byte* at, std::size_t bytes) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;  // the system needs memory to split a mapping
  if (reserve_addresses(at, bytes, MAP_FIXED) == MAP_FAILED) return system_error();
  return {};
}

Status CpuPageMemory::set_access(std::byte* at, std::size_t bytes, Accessor /*who*/, Right right) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  if (mprotect(at, bytes, protection(right)) != 0) return system_error();
  return {};
}

Result<int> CpuPageMemory::export_page(Page page) noexcept {
  if (!is_own_file(page)) return Errc::invalid_argument;
  if (allocation_must_fail()) return Errc::out_of_memory;
  const int copy = fcntl(file_of(page), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return system_error();
  return copy;
}

Result<Page> CpuPageMemory::import_page(int descriptor, Device /*device*/, std::size_t bytes) noexcept {
  struct stat status{};
  // If the file could shrink, a reader would die of SIGBUS.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return Errc::invalid_argument;
  if (fstat(descriptor, &status) != 0 || status.st_size != static_cast<off_t>(bytes)) return Errc::invalid_argument;
  if (allocation_must_fail()) return Errc::out_of_memory;
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return system_error();
  return own_file(copy, nullptr, bytes);
}

CpuPageMemory& cpu_page_memory() noexcept {
  static CpuPageMemory instance;
  return instance;
}

}  // namespace headrace::detail
