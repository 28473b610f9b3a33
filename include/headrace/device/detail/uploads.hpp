#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

/// Memory used by asynchronous work must outlive that work, even if an exception ends a scope early, because a buffer
/// does not wait for streams. Either declare streams after the memory that they work on, since a Stream waits at its
/// destruction, or use one of these classes.
namespace headrace {

/// Waits at the end of its scope for everything that has been enqueued on a stream. Declare it after the memory that
/// the work reads and writes.
class WaitAtEnd {
 public:
  explicit WaitAtEnd(StreamRef stream) noexcept : stream_(stream) {}
  WaitAtEnd(const WaitAtEnd&) = delete;
  WaitAtEnd& operator=(const WaitAtEnd&) = delete;
  ~WaitAtEnd() { static_cast<void>(stream_.wait()); }

 private:
  StreamRef stream_;
};

/// Copies host memory into new buffers of a device, all at once. Its destructor waits for every copy, so that a failure
/// in between frees nothing too early. Memory passed to add() must outlive this.
class Uploads {
 public:
  /// @param doing  what the copies are for, in error messages: "copying an index"
  Uploads(Device device, std::string_view doing) : doing_(doing), stream_(device) {}

  /// Starts copying `from` and returns the number of its buffer. Throws DeviceError.
  template <class T>
  std::size_t add(std::span<const T> from) {
    buffers_.emplace_back(stream_.device(), MemoryKind::device, from.size_bytes());
    stream_.copy(buffers_.back().data(), from.data(), from.size_bytes()).or_throw(doing_);
    return buffers_.size() - 1;
  }
  template <class T>
  std::size_t add(const std::vector<T>& from) {
    return add(std::span<const T>(from));
  }
  template <class T>
  std::size_t add(std::vector<T>&& from) = delete;

  /// Waits for the copies and returns the buffers in the order in which they were added. Throws DeviceError.
  [[nodiscard]] std::vector<Buffer> finish() {
    stream_.wait().or_throw(doing_);
    return std::exchange(buffers_, {});
  }

 private:
  std::string_view doing_;
  std::vector<Buffer> buffers_;
  Stream stream_;  ///< Last, so that its destructor waits before the buffers are freed.
};

}  // namespace headrace
