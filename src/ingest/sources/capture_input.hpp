#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "headrace/base/detail/clock.hpp"
#include "ingest/sources/unpack.hpp"

namespace headrace::ingest {

/// Thrown if the requested bytes have not come through a pipe yet. The caller may ask again: the state is unchanged.
class CaptureStarved final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "no data has come through the pipe yet"; }
};

/// A file, a pipe or bytes in memory, read from start to end through a window. It unpacks gzip and Zstandard data. It
/// reads files instead of mapping them, so that a file that is truncated meanwhile just ends and raises no signal.
class CaptureInput {
 public:
  static constexpr std::size_t kWindow = std::size_t{1} << 20;

  /// `path` may name a pipe; "-" is the standard input. Throws SystemError if there is no such file, UsageError if it
  /// is a folder.
  explicit CaptureInput(const std::string& path);
  /// `bytes` must outlive this object.
  explicit CaptureInput(std::span<const std::byte> bytes) noexcept : window_(bytes) {}

  /// The next `count` bytes, at most kWindow; fewer at the end. They stay until the next call.
  /// Throws CaptureStarved if a pipe does not deliver them in time, DataError if packed data is damaged or ends too
  /// early, after everything that could be unpacked.
  [[nodiscard]] std::span<const std::byte> peek(std::size_t count) {
    if (window_.size() < count && file_.valid()) refill(count);
    return window_.first(count < window_.size() ? count : window_.size());
  }
  /// Skips `count` bytes. False if the data ended before that.
  bool skip(std::uint64_t count);
  /// The offset of the next byte from the start.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// True for a pipe. wait_for() sets how long peek() waits for it.
  [[nodiscard]] bool is_pipe() const noexcept { return is_pipe_; }
  void wait_for(Duration patience) noexcept { patience_ = patience; }

 private:
  void refill(std::size_t count);
  [[nodiscard]] std::size_t read(std::span<std::byte> to);
  [[nodiscard]] std::size_t unpack(std::span<std::byte> to);
  void find_unpacker();

  FileDescriptor file_;
  std::string path_;
  bool is_pipe_ = false;
  Duration patience_ = Duration::max();
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;
  std::uint64_t offset_ = 0;
  std::unique_ptr<Unpacker> unpacker_;  ///< Null: the data is not packed.
  std::vector<std::byte> packed_;
  std::span<const std::byte> packed_left_;
  bool packed_ended_ = false;
};

}  // namespace headrace::ingest
