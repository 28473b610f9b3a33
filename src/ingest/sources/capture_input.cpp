#include "ingest/sources/capture_input.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

CaptureInput::CaptureInput(const std::string& path)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path_(path), buffer_(kWindow) {
  if (!file_.valid() && errno == ENOENT) throw SystemError(Errc::not_found, "there is no file " + path, ENOENT);
  if (!file_.valid()) throw_errno("opening " + path);
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) throw_errno("opening " + path);
  if (!S_ISREG(status.st_mode)) throw UsageError(path + " is not a file", Errc::not_found);
}

std::span<const std::byte> CaptureInput::peek(std::size_t count) {
  if (window_.size() < count && file_.valid()) refill();
  return window_.first(std::min(count, window_.size()));
}

bool CaptureInput::skip(std::uint64_t count) {
  while (true) {
    const std::size_t step = std::min<std::uint64_t>(count, window_.size());
    window_ = window_.subspan(step);
    offset_ += step;
    count -= step;
    if (count == 0) return true;
    if (peek(1).empty()) return false;
  }
}

void CaptureInput::refill() {
  std::size_t kept = window_.size();
  if (kept != 0) std::memmove(buffer_.data(), window_.data(), kept);
  while (kept < buffer_.size()) {
    const ssize_t got = ::read(file_.get(), buffer_.data() + kept, buffer_.size() - kept);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading " + path_);
    if (got == 0) break;
    kept += static_cast<std::size_t>(got);
  }
  window_ = std::span<const std::byte>(buffer_).first(kept);
}

}  // namespace headrace::ingest
