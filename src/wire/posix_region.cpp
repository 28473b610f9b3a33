#include "wire/posix_region.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kKeyMax = 254;     // bytes; the limit of shm_open()
constexpr std::size_t kPartsMax = 1024;  // most parts of one preadv(): IOV_MAX

/// The name of an object in /dev/shm. A key may have a leading slash, and must not lead anywhere else.
std::string object_name(std::string_view key) {
  const std::string_view name = key.substr(key.starts_with('/') ? 1 : 0);
  const bool is_name = !name.empty() && name.size() <= kKeyMax && name != "." && name != ".." &&
                       name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
  if (!is_name) {
    refuse(fmt::format("a shared memory key must have 1 to {} bytes and no slash except a leading one, unlike '{}'",
                       kKeyMax, key));
  }
  return fmt::format("/{}", name);
}

[[noreturn]] void refuse_to_open(std::string_view key, int error) {
  const std::string why = fmt::format("shared memory '{}': {}", key, std::generic_category().message(error));
  switch (error) {
    case ENOENT: throw RequestError(kNotFound, fmt::format("there is no shared memory '{}' on this machine", key));
    case EMFILE:
    case ENFILE:
    case ENOMEM: throw RequestError(kUnavailable, why);
    default: refuse(why);
  }
}

}  // namespace

PosixRegion::PosixRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes)
    : SharedRegion(RegionKind::system, std::move(name), bytes), key_(std::move(key)), offset_(offset) {
  const std::string object = object_name(key_);
  // O_NONBLOCK, because a pipe or a file with a lease would block the thread and all its connections.
  object_ = FileDescriptor(::shm_open(object.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC, 0));
  if (!object_.valid()) refuse_to_open(key_, errno);
  struct stat status{};
  if (::fstat(object_.get(), &status) != 0) refuse_to_open(key_, errno);
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("'{}' is not shared memory", key_));
  const auto whole = static_cast<std::uint64_t>(status.st_size);
  if (offset_ > whole || bytes > whole - offset_) {
    refuse(fmt::format("region \"{}\" needs {} bytes from offset {} on, but the shared memory '{}' has {}",
                       SharedRegion::name(), bytes, offset_, key_, whole));
  }
}

void PosixRegion::refuse_short() const {
  refuse(fmt::format("the shared memory of region \"{}\" has been cut short since it was registered", name()));
}

template <class Byte, class Call>
void PosixRegion::move(std::uint64_t at, const Rows<Byte>& rows, Call call) const {
  const std::size_t whole = rows.count * rows.bytes;
  const bool side_by_side = rows.stride == rows.bytes;
  std::array<iovec, kPartsMax> parts;
  for (std::size_t done = 0; done < whole;) {
    std::size_t count = 0;
    for (std::size_t from = done; from < whole && count < parts.size(); from += parts[count++].iov_len) {
      const std::size_t within = from % rows.bytes;
      auto* const begin = const_cast<std::byte*>(rows.first + from / rows.bytes * rows.stride + within);
      parts[count] = {begin, side_by_side ? whole - from : rows.bytes - within};
    }
    const ssize_t moved =
        call(object_.get(), parts.data(), static_cast<int>(count), static_cast<off_t>(offset_ + at + done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) {
      const int error = errno;
      const std::string why = fmt::format("region \"{}\": {}", name(), std::generic_category().message(error));
      throw RequestError(error == ENOSPC || error == ENOMEM ? kUnavailable : kBadRequest, why);
    }
    if (moved == 0) refuse_short();
    done += static_cast<std::size_t>(moved);
  }
}

void PosixRegion::read(std::uint64_t at, const Rows<std::byte>& rows) const { move(at, rows, ::preadv); }

void PosixRegion::write(std::uint64_t at, const Rows<const std::byte>& rows) const {
  struct stat status{};
  const bool known = ::fstat(object_.get(), &status) == 0;
  // Checks the size, because pwritev() would extend the object.
  if (!known || static_cast<std::uint64_t>(status.st_size) < offset_ + bytes()) refuse_short();
  move(at, rows, ::pwritev);
}

}  // namespace headrace::wire
