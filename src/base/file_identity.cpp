#include "headrace/base/detail/file_identity.hpp"

#include <sys/stat.h>

#include <ctime>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) noexcept { return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec; }

/// The clock with which file systems date changes, and the length of one of its ticks.
std::int64_t coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds(now);
}
std::int64_t coarse_tick() noexcept {
  timespec tick{};
  ::clock_getres(CLOCK_REALTIME_COARSE, &tick);
  return nanoseconds(tick);
}

}  // namespace

FileIdentity identity_of(const struct stat& status) noexcept {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim),
          .links = status.st_nlink};
}

bool is_unchanged(const FileIdentity& then, const FileIdentity& now) noexcept {
  return then.device == now.device && then.inode == now.inode && then.bytes == now.bytes &&
         then.modified_ns == now.modified_ns && (then.changed_ns == now.changed_ns || now.links == 0);
}

FileIdentity identity_of(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) throw_errno("reading the status of " + path);
  return identity_of(status);
}

FileIdentity settled_identity(int descriptor, const std::string& path) {
  const std::int64_t tick = coarse_tick();
  FileIdentity identity = identity_of(descriptor, path);
  for (std::int64_t waited = 0; waited < 2 * tick; waited += tick / 4) {
    const std::int64_t age = coarse_now() - identity.changed_ns;
    if (age > 0 || age < -tick) break;  // a time further ahead comes from another machine's clock
    const timespec pause{.tv_sec = 0, .tv_nsec = tick / 4};
    ::nanosleep(&pause, nullptr);
    identity = identity_of(descriptor, path);
  }
  return identity;
}

}  // namespace headrace
