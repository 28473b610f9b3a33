#include "ingest/sources/capture_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/wait.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

/// Bytes read at a time: they are still in the second-level cache when packets are copied out of them.
constexpr std::size_t kStep = std::size_t{256} << 10;
constexpr std::size_t kPacked = std::size_t{64} << 10;
constexpr std::size_t kMagic = 4;
/// The longest single wait; longer waits are repeated.
constexpr Duration kForever = std::chrono::hours(24);

}  // namespace

CaptureInput::CaptureInput(const std::string& path)
    : file_(path == "-" ? ::fcntl(0, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      path_(path == "-" ? "the standard input" : path),
      buffer_(kWindow) {
  if (!file_.valid() && errno == ENOENT) throw SystemError(Errc::not_found, "there is no file " + path_, ENOENT);
  if (!file_.valid()) throw_errno("opening " + path_);
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) throw_errno("opening " + path_);
  is_pipe_ = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode);
  if (!S_ISREG(status.st_mode) && !is_pipe_) throw UsageError(path_ + " is not a file", Errc::not_found);
  find_unpacker();
}

/// Chooses the unpacker by the first bytes.
void CaptureInput::find_unpacker() {
  const auto start = peek(kMagic);
  unpacker_ = make_unpacker(start, path_);
  if (!unpacker_) return;
  packed_.assign(window_.begin(), window_.end());
  packed_left_ = packed_;
  window_ = {};
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

/// Reads until the window has `count` bytes, and from a file at least a step. Does not wait for a pipe beyond `count`.
void CaptureInput::refill(std::size_t count) {
  std::size_t kept = window_.size();
  if (kept != 0) std::memmove(buffer_.data(), window_.data(), kept);
  window_ = std::span<const std::byte>(buffer_).first(kept);  // in case the next lines throw
  const std::size_t enough = is_pipe_ ? count : std::max(count, kStep);
  while (kept < enough) {
    const auto to = std::span(buffer_).subspan(kept, std::max(enough, kStep) - kept);
    try {
      const std::size_t got = unpacker_ ? unpack(to) : read(to);
      if (got == 0) return;
      kept += got;
    } catch (const DataError&) {
      if (kept < count) throw;
      return;  // bytes before the damage come first; the next call reports it
    }
    window_ = std::span<const std::byte>(buffer_).first(kept);
  }
}

/// Reads the next bytes of the file; returns 0 at its end.
std::size_t CaptureInput::read(std::span<std::byte> to) {
  while (true) {
    if (is_pipe_) {
      const auto ready = wait_readable(file_.get(), std::min(patience_, kForever));
      if (!ready) throw_error("reading " + path_, ready.error());
      if (!*ready && patience_ != Duration::max()) throw CaptureStarved{};
      if (!*ready) throw SystemError(Errc::system, "reading " + path_ + ": interrupted");
    }
    const ssize_t got = ::read(file_.get(), to.data(), to.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw_errno("reading " + path_);
  }
}

std::size_t CaptureInput::unpack(std::span<std::byte> to) {
  while (true) {
    const Unpacker::Step step = unpacker_->step(packed_left_, to);
    packed_left_ = packed_left_.subspan(step.used);
    if (step.made != 0) return step.made;
    if (!packed_left_.empty()) continue;
    if (packed_ended_) {
      if (unpacker_->complete()) return 0;
      throw DataError(
          fmt::format("{}: the file is truncated: it ends in the middle of its {} data", path_, unpacker_->format()));
    }
    packed_.resize(kPacked);
    const std::size_t got = read(packed_);
    packed_left_ = std::span<const std::byte>(packed_).first(got);
    packed_ended_ = got == 0;
  }
}

}  // namespace headrace::ingest
