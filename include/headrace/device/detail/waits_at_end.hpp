#pragma once

#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Waits for a stream at the end of its scope, even after an exception. Declared after the memory that the stream's
/// work uses, it makes that memory outlive the work.
class WaitsAtEnd {
 public:
  explicit WaitsAtEnd(StreamRef stream) noexcept : stream_(stream) {}
  WaitsAtEnd(const WaitsAtEnd&) = delete;
  WaitsAtEnd& operator=(const WaitsAtEnd&) = delete;
  ~WaitsAtEnd() { static_cast<void>(stream_.wait()); }

 private:
  StreamRef stream_;
};

}  // namespace headrace::detail
