#include "operators/retrieval/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

/// Owns a file descriptor.
class Descriptor {
 public:
  /// Opening a FIFO does not wait for its writer.
  Descriptor(const std::string& path, int flags, std::string_view doing)
      : number_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) throw_errno(fmt::format("{} {}", doing, path));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

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

}  // namespace headrace::operators
