#include "operators/retrieval/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, std::string_view doing)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) throw_errno(fmt::format("{} {}", doing, path));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int number() const noexcept { return number_; }
  /// Closes now; some file systems report a failed write only here.
  [[nodiscard]] bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// Removes a file unless told to keep it.
class TemporaryName {
 public:
  explicit TemporaryName(std::string path) : path_(std::move(path)) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void keep() noexcept { path_.clear(); }

 private:
  std::string path_;
};

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& doing) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno(doing);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

MappedFile map_file(const std::filesystem::path& path) {
  const Descriptor file(path.string(), O_RDONLY, "opening");
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw_errno(fmt::format("reading {}", path.string()));
  if (!S_ISREG(status.st_mode)) {
    throw SystemError(Errc::invalid_argument, fmt::format("opening {}: it is not a file", path.string()), EINVAL);
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0) return {};
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) throw_errno(fmt::format("mapping {}", path.string()));
  std::shared_ptr<const void> owner(data, [bytes](void* mapped) { ::munmap(mapped, bytes); });
  return {{static_cast<const std::byte*>(data), bytes}, std::move(owner)};
}

void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::string doing = fmt::format("writing {}", path.string());
  // Not by the process's number alone: those of containers are alike, and a file that one left would block the others.
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}.tmp", path.string(), random(), random());
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL, "creating");
  TemporaryName name(temporary);
  write_all(file, bytes, doing);
  if (::fsync(file.number()) != 0) throw_errno(doing);
  if (!file.close()) throw_errno(doing);
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(doing);
  name.keep();
  // The new name must be on the disk as well. A file system that cannot sync directories has its own way.
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Descriptor directory(folder.string(), O_RDONLY | O_DIRECTORY, "opening");
  if (::fsync(directory.number()) != 0 && errno != EINVAL) throw_errno(doing);
}

}  // namespace headrace::operators
