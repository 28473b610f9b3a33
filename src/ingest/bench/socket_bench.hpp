#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

/// The kernel's own receiver of TCP, which Receiver is measured beside.
namespace headrace::ingest {

struct SocketCase {
  std::size_t frame_bytes = 64 * kMiB;
  std::uint32_t frame_count = 4;   ///< 2 at least.
  std::size_t chunk_bytes = kMiB;  ///< Bytes of one recv() and one copy; no more than a frame.
  std::uint32_t chunk_count = 8;   ///< In pinned memory. 2 at least.
  std::uint64_t seed = 1;          ///< StreamBytes of it are what is sent.
};

struct SocketRun {
  Duration took{};  ///< Until the last frame was looked at.
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  bool right = true;  ///< Frames held what was sent, as far as they were looked at.
};

/// Frames on a device from a connected socket: recv() into pinned memory, and from there asynchronous copies, which run
/// while the next bytes are received. Another thread looks at each frame and gives it back.
class SocketReception {
 public:
  /// Throws UsageError for a case that cannot be, DeviceError where there is no room.
  SocketReception(Device device, const SocketCase& of);
  SocketReception(SocketReception&&) noexcept;
  ~SocketReception();

  /// Reads `connection` until its peer ends it or `stop`, which is seen within 100 ms. `whole`: every byte is
  /// compared with what was sent; else 64 KiB at both ends of each frame. Throws SystemError when the connection fails
  /// or nothing comes for a minute. The descriptor stays the caller's; its timeout for receiving does not stay as it
  /// was.
  [[nodiscard]] SocketRun receive(int connection, bool whole, const std::stop_token& stop = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
