#pragma once

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/resident/control.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

/// Throws UsageError for frames that resident control cannot build.
void check(const FrameOptions& frames, std::uint32_t frames_max);

/// The memory that the kernel of a ResidentControl uses besides packets and frames, allocated and initialised once.
class Memory {
 public:
  /// Throws UsageError for options out of range, DeviceError if there is no room.
  Memory(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options, StreamRef stream);

  [[nodiscard]] const View& view() const noexcept { return view_; }

 private:
  View view_;
  Buffer host_;
  Buffer device_;
};

}  // namespace headrace::ingest::resident
