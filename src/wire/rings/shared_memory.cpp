#include "wire/rings/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "headrace/base/error.hpp"

namespace headrace::wire::rings {

SharedMemory::SharedMemory(const FileDescriptor& file, std::size_t bytes) : bytes_(bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("mapping shared memory");
  begin_ = static_cast<std::byte*>(mapped);
  // A forked child must not use the mapping, and would keep the memory alive. If the system refuses, only the latter
  // happens.
  static_cast<void>(::madvise(mapped, bytes, MADV_DONTFORK));
}

SharedMemory::~SharedMemory() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

FileDescriptor make_sealed_memory(std::size_t bytes) {
  FileDescriptor file(::memfd_create("headrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) throw_errno("creating shared memory");
  // Allocates all pages now, so that touching a page later cannot fail for want of memory, which would be a SIGBUS.
  const int failure = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (failure != 0) throw_errno("creating shared memory", failure);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_errno("sealing shared memory");
  }
  return file;
}

bool is_sealed_memory(const FileDescriptor& file, std::size_t bytes) noexcept {
  struct stat found{};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return ::fstat(file.get(), &found) == 0 && seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
         static_cast<std::size_t>(found.st_size) == bytes;
}

}  // namespace headrace::wire::rings
