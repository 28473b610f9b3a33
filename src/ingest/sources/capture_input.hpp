#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ingest/sources/file_descriptor.hpp"

namespace headrace::ingest {

/// A file or bytes in memory, read from the start to the end through a window. A file is read, not mapped: one that is
/// cut short meanwhile is an end, not a signal.
class CaptureInput {
 public:
  static constexpr std::size_t kWindow = std::size_t{1} << 20;

  /// Throws UsageError when there is no such file.
  explicit CaptureInput(const std::string& path);
  /// `bytes` must stay.
  explicit CaptureInput(std::span<const std::byte> bytes) noexcept : window_(bytes) {}

  /// The next `count` bytes, at most kWindow; fewer at the end. They stay until the next call.
  [[nodiscard]] std::span<const std::byte> peek(std::size_t count);
  /// Goes on by `count` bytes, or to the end. False: it was the end.
  bool skip(std::uint64_t count);
  /// Of the next byte, from the start.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  void refill();

  FileDescriptor file_;
  std::string path_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;
  std::uint64_t offset_ = 0;
};

}  // namespace headrace::ingest
