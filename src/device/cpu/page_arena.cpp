#include "device/cpu/page_arena.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>

#include "device/cpu/memory.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/device/placement.hpp"

namespace headrace::detail {

Result<int> make_memory_file(bool sealable) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  const int file = memfd_create("headrace-pages", MFD_CLOEXEC | (sealable ? MFD_ALLOW_SEALING : 0U));
  if (file < 0) return system_error();
  return file;
}

Status map_file_page(std::byte* at, int file, std::int64_t offset, std::size_t bytes) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  void* const mapped = mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, offset);
  if (mapped == MAP_FAILED) return system_error();
  return {};
}

PageArena::~PageArena() {
  if (file_ >= 0) close(file_);
}

std::int64_t PageArena::offset_of(std::uint64_t page) const noexcept {
  return static_cast<std::int64_t>(page * page_bytes_);
}

Status PageArena::open() noexcept {
  if (file_ >= 0) return {};
  const auto file = make_memory_file(false);
  if (!file) return file.error();
  file_ = *file;
  return {};
}

void PageArena::close_if_empty() noexcept {
  if (free_.size() != page_count_) return;
  if (file_ >= 0) close(file_);
  file_ = -1;
  page_count_ = 0;
  free_.clear();
}

Status PageArena::take_number(std::uint64_t& page) noexcept {
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
    return {};
  }
  if (const Status opened = open(); !opened) return opened;
  if (allocation_must_fail()) return Errc::out_of_memory;
  try {
    if (free_.capacity() <= page_count_) free_.reserve(2 * page_count_ + 8);  // so that give() needs no memory
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  if (ftruncate(file_, offset_of(page_count_ + 1)) != 0) return system_error();
  page = page_count_++;
  return {};
}

Result<std::uint64_t> PageArena::take() noexcept {
  if (memory_ != nullptr && !memory_->take_budget(page_bytes_)) return Errc::out_of_memory;
  std::uint64_t page = 0;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = take_number(page);
    if (!status) close_if_empty();
  }
  if (!status) {
    if (memory_ != nullptr) memory_->give_budget(page_bytes_);
    return status.error();
  }
  if (const Status bound = bind(page); !bound) {
    give(page);
    return bound.error();
  }
  return page;
}

void PageArena::give(std::uint64_t page) noexcept {
  if (!birth_.inherited()) {
    const std::lock_guard lock(mutex_);
    // A page that cannot be punched out of the file stays in memory and serves the next request.
    static_cast<void>(
        fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(page), static_cast<off_t>(page_bytes_)));
    free_.push_back(page);
    close_if_empty();
  }
  if (memory_ != nullptr) memory_->give_budget(page_bytes_);
}

Result<int> PageArena::take_file() noexcept {
  if (memory_ != nullptr && !memory_->take_budget(page_bytes_)) return Errc::out_of_memory;
  const auto file = make_memory_file(true);
  // Sealed, so that a process that maps the file can rely on all of it.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (file && ftruncate(*file, static_cast<off_t>(page_bytes_)) == 0 && fcntl(*file, F_ADD_SEALS, kSeals) == 0)
    return *file;
  const Error error = file ? system_error() : file.error();
  if (file) close(*file);
  if (memory_ != nullptr) memory_->give_budget(page_bytes_);
  return error;
}

void PageArena::give_file(int file) noexcept {
  close(file);
  if (memory_ != nullptr) memory_->give_budget(page_bytes_);
}

Status PageArena::map(std::byte* at, std::uint64_t page) const noexcept {
  const std::lock_guard lock(mutex_);
  return map_file_page(at, file_, offset_of(page), page_bytes_);
}

/// The policy of a shared mapping stays with the file's pages after the mapping is gone (mbind(2), "shared memory").
Status PageArena::bind(std::uint64_t page) const noexcept {
  if (!numa_node_) return {};
  constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> nodes{};
  const auto node = static_cast<std::size_t>(*numa_node_);
  if (*numa_node_ < 0 || node >= nodes.size() * kWordBits) return Errc::invalid_argument;
  nodes[node / kWordBits] = 1UL << (node % kWordBits);
  const std::lock_guard lock(mutex_);
  void* const at = mmap(nullptr, page_bytes_, PROT_NONE, MAP_SHARED, file_, offset_of(page));
  if (at == MAP_FAILED) return system_error();
  const long bound = syscall(SYS_mbind, at, page_bytes_, MPOL_BIND, nodes.data(), nodes.size() * kWordBits,
                             0UL);  // no wrapper in libc
  const int code = errno;
  munmap(at, page_bytes_);
  if (bound == 0) return {};
  return code == EINVAL ? Error{Errc::invalid_argument, code} : Error{Errc::system, code};
}

}  // namespace headrace::detail
