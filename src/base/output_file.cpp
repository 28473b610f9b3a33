#include "base/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr int kLinksMost = 40;  // as Linux
constexpr int kNamesTried = 100;
constexpr std::size_t kPieceBytes = 1 << 16;
constexpr mode_t kAnyMode = 0666;  // less the umask
constexpr mode_t kModeBits = 07777;

/// A random name in `folder` that no other process uses.
std::string random_name(const std::string& folder) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) throw_errno("getting a random number");
  return fmt::format("{}/.headrace-{:016x}.tmp", folder, number);
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// The name at the end of a chain of symbolic links whose target does not exist.
std::string end_of_links(std::string path, const std::string& doing) {
  for (int links = 0; links < kLinksMost; ++links) {
    std::array<char, PATH_MAX> text{};
    const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
    if (length < 0) return path;
    const std::filesystem::path next(std::string(text.data(), static_cast<std::size_t>(length)));
    path = next.is_absolute() ? next.string() : (std::filesystem::path(folder_of(path)) / next).string();
  }
  throw_errno(doing, ELOOP);
}

/// The standard stream that already writes to this file, or -1. Writing must continue at its position.
int standard_stream(const struct stat& file) {
  for (int number = 0; number <= 2; ++number) {
    struct stat status{};
    if (::fstat(number, &status) != 0 || status.st_dev != file.st_dev || status.st_ino != file.st_ino) continue;
    if ((::fcntl(number, F_GETFL) & O_ACCMODE) != O_RDONLY) return number;
  }
  return -1;
}

void write_all(int file, std::span<const std::byte> bytes, const std::string& doing,
               const std::function<void()>& interrupted = {}) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) throw_errno(doing);
    if (written < 0 && interrupted) interrupted();
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void sync(int file, const std::string& doing) {
  // A file system that cannot sync returns EINVAL and keeps what was written in its own way.
  if (::fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP) throw_errno(doing);
}

/// Closes a descriptor at the end of a scope.
class Closing {
 public:
  explicit Closing(int file) noexcept : file_(file) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() {
    if (file_ >= 0) ::close(file_);
  }

 private:
  int file_;
};

}  // namespace

OutputFile::Target OutputFile::find(const std::filesystem::path& path) {
  const std::string doing = fmt::format("writing {}", path.string());
  Target target;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_errno(doing);
    target.path = end_of_links(path.string(), doing);
    target.folder = folder_of(target.path);
    return target;
  }
  if (S_ISDIR(status.st_mode)) throw UsageError(fmt::format("{} is a folder, not a file to write", path.string()));
  if (S_ISSOCK(status.st_mode)) throw_errno(doing, ENXIO);
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) throw_errno(doing);
  target.path = path.string();
  target.standard = standard_stream(status);
  target.through = !S_ISREG(status.st_mode) || target.standard >= 0;
  if (target.through) return target;
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  struct stat found{};
  // A /proc link to a file without a name does not lead to another file.
  target.through = resolved == nullptr || ::stat(resolved.get(), &found) != 0 || found.st_ino != status.st_ino ||
                   found.st_dev != status.st_dev;
  if (target.through) return target;
  target.path = resolved.get();
  target.folder = folder_of(target.path);
  target.replaced = status;
  return target;
}

OutputFile::OutputFile(const std::filesystem::path& path) : shown_(path.string()) {
  if (shown_.empty()) throw UsageError("the path of the output file is empty");
  target_ = find(path);
  if (target_.through) {
    stage(std::filesystem::temp_directory_path().string());
    return;
  }
  struct stat status{};
  const bool found = ::stat(target_.folder.c_str(), &status) == 0;
  if (found ? status.st_nlink == 0 : errno == ENOENT) {  // a folder without links was deleted, but may still be "."
    const auto name = std::filesystem::path(target_.path).filename().string();
    throw SystemError(Errc::not_found, fmt::format("there is no folder {} to write {} to", target_.folder, name),
                      ENOENT);
  }
  stage(target_.folder);
}

void OutputFile::stage(const std::string& folder) {
  file_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kAnyMode);
  if (file_ >= 0) {
    staging_ = fmt::format("/proc/{}/fd/{}", ::getpid(), file_);
    if (::access(staging_.c_str(), F_OK) == 0) return;
    ::close(std::exchange(file_, -1));  // without /proc no process could open it or give it a name
  } else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
    throw_errno(fmt::format("writing {}", shown_));
  }
  for (int tried = 0; tried < kNamesTried; ++tried) {
    std::string name = random_name(folder);
    file_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kAnyMode);
    if (file_ >= 0) {
      named_ = name;
      staging_ = std::move(name);
      return;
    }
    if (errno != EEXIST) break;
  }
  throw_errno(fmt::format("writing {}", shown_));
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  if (!named_.empty()) ::unlink(named_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) { write_all(file_, bytes, fmt::format("writing {}", shown_)); }

void OutputFile::commit(const std::function<void()>& interrupted) {
  if (target_.through) {
    copy_through(interrupted);
  } else {
    take_attributes();
    sync(file_, fmt::format("writing {}", shown_));
    rename();
  }
}

void OutputFile::copy_through(const std::function<void()>& interrupted) const {
  const std::string doing = fmt::format("writing {}", shown_);
  int file = target_.standard >= 0 ? ::fcntl(target_.standard, F_DUPFD_CLOEXEC, 0) : -1;
  while (file < 0) {
    file = ::open(target_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);  // a FIFO opens once it has a reader
    if (file >= 0) break;
    if (errno != EINTR) throw_errno(doing);
    if (interrupted) interrupted();
  }
  const Closing closing(file);
  std::array<std::byte, kPieceBytes> piece{};
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(file_, piece.data(), piece.size(), at);
    if (got < 0) throw_errno(doing);
    if (got == 0) return;
    write_all(file, std::span(piece).first(static_cast<std::size_t>(got)), doing, interrupted);
    at += got;
  }
}

void OutputFile::take_attributes() const {
  if (!target_.replaced) return;
  // A user without the right to give files away stays the owner. The caller asked for the content only.
  const bool owned = ::fchown(file_, target_.replaced->st_uid, target_.replaced->st_gid) == 0;
  const mode_t mode = target_.replaced->st_mode & (owned ? kModeBits : mode_t{0777});
  if (::fchmod(file_, mode) != 0) throw_errno(fmt::format("writing {}", shown_));
}

void OutputFile::rename() {
  const std::string doing = fmt::format("writing {}", shown_);
  for (int tried = 0; named_.empty(); ++tried) {
    std::string name = random_name(target_.folder);
    if (::linkat(AT_FDCWD, staging_.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      named_ = std::move(name);
    } else if (errno != EEXIST || tried == kNamesTried) {
      throw_errno(doing);
    }
  }
  if (::rename(named_.c_str(), target_.path.c_str()) != 0) throw_errno(doing);
  named_.clear();
  // The new name must be on the disk as well. A folder that this process may not read cannot be synced.
  const int folder = ::open(target_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const Closing closing(folder);
  sync(folder, doing);
}

void check_output(const std::filesystem::path& path) { const OutputFile tried(path); }

void write_output(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  const std::function<void()>& interrupted) {
  OutputFile file(path);
  file.write(bytes);
  file.commit(interrupted);
}

}  // namespace headrace
