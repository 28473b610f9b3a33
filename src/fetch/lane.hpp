#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "fetch/chunk_cache.hpp"
#include "fetch/host_chunk.hpp"
#include "fetch/recorder.hpp"
#include "fetch/slabs.hpp"
#include "headrace/base/clock.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::fetch {

/// A chunk on the device.
struct DeviceChunk {
  ColumnView view;
  Slabs::Block block;
};

using HostCache = ChunkCache<HostChunk>;
using DeviceCache = ChunkCache<DeviceChunk>;

/// A thread's own way to the device: a stream, and a batch of copies on it. It keeps what copies on their way read
/// from, and publishes chunks whose copies are done. Used by one thread at a time; recycled from fetch to fetch.
class Lane {
 public:
  /// Throws DeviceError when the device refuses.
  Lane(Device device, std::size_t flush_bytes);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /// drain() has been called since the last add().
  ~Lane() = default;

  [[nodiscard]] std::size_t flush_bytes() const noexcept { return flush_bytes_; }
  /// From here on takes notes of its transfers, or none any more. Only while nothing is on its way; it may wait for the
  /// device. Throws DeviceError when the device refuses.
  void take_notes(Notes notes);
  /// Adds the copy of a chunk to `to`, whose block is there and whose maker is the caller. `to` stays where it is until
  /// it is published. Submits when enough is gathered.
  [[nodiscard]] Status add(Chunk chunk, HostCache::Pin from, DeviceCache::Pin& to);
  /// Submits what has been gathered.
  [[nodiscard]] Status submit() noexcept;
  /// Submits, waits, and lets go of everything; chunks that have come are published. After a failure what was on its
  /// way is left to be abandoned.
  [[nodiscard]] Status drain() noexcept;
  /// Holds back later work on `consumer` until what has been submitted has come.
  [[nodiscard]] Status barrier(StreamRef consumer) noexcept { return consumer.wait_for(last_); }

  /// Time in which something was on its way, as it was seen from here, since the last call.
  [[nodiscard]] Duration take_busy() noexcept { return std::exchange(busy_, Duration{}); }

 private:
  struct OnItsWay {
    Chunk chunk;
    HostCache::Pin from;
    DeviceCache::Pin* to;
  };
  struct Group {
    Event done;
    std::optional<Event> begun;  ///< While notes are taken, as are the times of `done`.
    Time started;
    std::vector<OnItsWay> chunks;
  };

  /// Everything added so far has been submitted: it becomes a group.
  [[nodiscard]] Status close_group();
  void arrive(Group& group);
  void note(const Group& group) noexcept;
  [[nodiscard]] Result<Event> take_event() noexcept;
  /// Begins a group: what is gathered next is its first chunk.
  [[nodiscard]] Status open_group();

  std::size_t flush_bytes_;
  Stream stream_;
  CopyBatch batch_;
  Event last_;
  std::vector<OnItsWay> gathered_;
  Time started_{};
  std::optional<Event> begun_;  ///< Of the group that is gathered.
  std::deque<Group> groups_;
  std::vector<Event> events_;  ///< To be used again.
  std::uint64_t submissions_ = 0;
  Time seen_{};  ///< Until then busy_ has been counted.
  Duration busy_{};
  Notes notes_;
  std::optional<Event> base_;  ///< What notes_ are timed from, on the device,
  Time base_time_{};           ///< and when that was, on the host.
};

}  // namespace headrace::fetch
