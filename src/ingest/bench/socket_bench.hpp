#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

/// A reception through the kernel's TCP, as a reference for Receiver.
namespace headrace::ingest {

struct SocketCase {
  std::size_t frame_bytes = 64 * kMiB;
  std::uint32_t frame_count = 4;   ///< At least 2.
  std::size_t chunk_bytes = kMiB;  ///< Bytes of one recv() and one copy; at most a frame.
  std::uint32_t chunk_count = 8;   ///< Chunks in pinned memory; at least 2.
  std::uint64_t seed = 1;          ///< The sender sends StreamBytes(seed).
};

struct SocketRun {
  Duration took{};  ///< Time until the last frame was verified.
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  bool right = true;  ///< All bytes that were compared were right.
};

/// Builds frames on a device from a connected socket: recv() into pinned memory, then asynchronous copies, which run
/// while the next bytes are received. Another thread verifies each frame and returns it.
class SocketReception {
 public:
  /// Throws UsageError for a case out of range, DeviceError if there is no room.
  SocketReception(Device device, const SocketCase& of);
  SocketReception(SocketReception&&) noexcept;
  ~SocketReception();

  /// Reads `connection` until its peer ends it or `stop` is requested, which it notices within 100 ms. `whole`:
  /// compares every byte with what was sent; else 64 KiB at both ends of each frame. Throws SystemError if the
  /// connection fails or nothing comes for a minute. The caller keeps the descriptor; its receive timeout changes.
  [[nodiscard]] SocketRun receive(int connection, bool whole, const std::stop_token& stop = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
