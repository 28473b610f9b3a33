#include "headrace/fetch/detail/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

constexpr std::size_t kPage = 4096;
/// Bytes per call that populates pages. Signals and failures are noticed between two calls.
constexpr std::size_t kPopulateBytes = 64 * kMiB;
#ifdef MADV_POPULATE_READ
constexpr int kPopulate = MADV_POPULATE_READ;
#else
constexpr int kPopulate = 22;  // Linux 5.14
#endif

/// Fallback for kernels without MADV_POPULATE_READ: reads the range through the file descriptor.
void read_through(int descriptor, std::size_t offset, std::size_t bytes, const std::string& path) {
  std::vector<std::byte> scratch(std::min(bytes, kMiB));
  while (bytes > 0) {
    const ssize_t got =
        ::pread(descriptor, scratch.data(), std::min(bytes, scratch.size()), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading " + path);
    if (got == 0) throw DataError(path + " has been cut short since it was opened");
    offset += static_cast<std::size_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

[[noreturn]] void refuse(const std::string& path, mode_t mode) {
  const std::string_view kind = S_ISDIR(mode)    ? "a folder"
                                : S_ISFIFO(mode) ? "a pipe, which does not allow random access"
                                : S_ISSOCK(mode) ? "a socket"
                                                 : "a device";
  throw UsageError(fmt::format("{} is not a file but {}", path, kind), Errc::not_found);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, std::string name)
    : path_(name.empty() ? path.string() : std::move(name)) {
  struct stat status{};
  // Checks the type before opening, because opening a pipe may block and opening a device may have side effects.
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) refuse(path_, status.st_mode);
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0 && errno == ENOENT) throw SystemError(Errc::not_found, "there is no file " + path_, ENOENT);
  if (descriptor_ < 0) throw_errno("opening " + path_);
  try {
    if (::fstat(descriptor_, &status) != 0) throw_errno("opening " + path_);
    if (!S_ISREG(status.st_mode)) refuse(path_, status.st_mode);
    identity_ = settled_identity(descriptor_, path_);
    bytes_ = static_cast<std::size_t>(identity_.bytes);
    if (bytes_ == 0) return;  // nothing to map
    void* mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (mapped == MAP_FAILED) throw_errno("mapping " + path_);
    data_ = static_cast<std::byte*>(mapped);
    guard_ = GuardedRange(data_, bytes_);
  } catch (...) {
    if (data_ != nullptr) ::munmap(data_, bytes_);
    ::close(descriptor_);
    throw;
  }
}

MappedFile::~MappedFile() {
  guard_ = GuardedRange();
  if (data_ != nullptr) ::munmap(data_, bytes_);
  ::close(descriptor_);
}

std::size_t MappedFile::bytes_from(const void* at) const noexcept {
  const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(data_);
  return offset < bytes_ ? bytes_ - offset : 0;
}

void MappedFile::require_unchanged() const {
  const FileIdentity now = identity_of(descriptor_, path_);
  if (now.bytes < identity_.bytes || guard_.lost()) {
    throw DataError(path_ + " has been cut short since it was opened: open it again");
  }
  if (!is_unchanged(identity_, now)) throw DataError(path_ + " has changed since it was opened: open it again");
}

void MappedFile::populate(std::size_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    throw DataError(
        fmt::format("{}: bytes {} to {} lie outside the file of {} bytes", path_, offset, offset + bytes, bytes_));
  }
  std::size_t at = offset / kPage * kPage;
  const std::size_t end = offset + bytes;
  while (at < end) {
    const std::size_t part = std::min(end - at, kPopulateBytes);
    if (::madvise(data_ + at, part, kPopulate) == 0) {
      at += part;
    } else if (errno == EFAULT) {
      throw DataError(path_ + " has been cut short since it was opened");
    } else if (errno == EINVAL || errno == ENOMEM) {
      read_through(descriptor_, at, part, path_);
      at += part;
    } else if (errno != EINTR && errno != EAGAIN) {
      throw_errno("reading " + path_);
    }
  }
}

void MappedFile::drop(std::size_t offset, std::size_t bytes) const noexcept {
  if (offset > bytes_ || bytes > bytes_ - offset) return;  // beyond the mapping lies other memory
  const std::size_t first = align_up(offset, kPage);
  const std::size_t end = offset + bytes == bytes_ ? bytes_ : (offset + bytes) / kPage * kPage;
  if (first >= end) return;
  // Unmaps the pages first, because the page cache keeps mapped pages.
  ::madvise(data_ + first, end - first, MADV_DONTNEED);
  ::posix_fadvise(descriptor_, static_cast<off_t>(first), static_cast<off_t>(end - first), POSIX_FADV_DONTNEED);
}

}  // namespace headrace::fetch
