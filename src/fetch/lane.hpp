#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "fetch/chunk_cache.hpp"
#include "fetch/host_chunk.hpp"
#include "fetch/recorder.hpp"
#include "fetch/slabs.hpp"
#include "headrace/base/detail/clock.hpp"
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

struct LaneOptions {
  /// The flush threshold of the batch.
  std::size_t flush_bytes = 0;
  /// Chunks are handed to the batch, and flushed, once they have so many bytes; 0: each at once, and the batch decides.
  std::size_t gather_bytes = 0;
  /// The threads that copy what lies in pageable memory.
  std::uint32_t staging_threads = 1;

  bool operator==(const LaneOptions&) const = default;
};

/// A way to the device: a stream, and a batch of copies on it. It keeps what copies on their way read from, and
/// publishes chunks whose copies are done. A thread's own, or of all threads of a fetch: while one submits, others add.
/// Recycled from fetch to fetch.
class Lane {
 public:
  /// @param slabs  where blocks of the device are taken; outlives the lane.
  /// Throws DeviceError when the device refuses.
  Lane(Device device, Slabs& slabs, const LaneOptions& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /// Waits for what is on its way: chunks that are read and written go with the lane.
  ~Lane() { static_cast<void>(stream_.wait()); }

  [[nodiscard]] const LaneOptions& options() const noexcept { return options_; }
  /// From here on takes notes of its transfers; with null, none any more. Only while nothing is on its way; it may wait
  /// for the device. Throws DeviceError when the device refuses.
  void take_notes(Recorder* recorder);
  /// Takes a block for a chunk, and adds its copy to `to`, whose maker is the caller; false, and nothing done, where
  /// the slabs have no room. `to` stays where it is until it is published. Submits when enough is gathered. Chunks that
  /// are added one after the other mostly lie one behind the other.
  /// @param thread  of the fetch, for notes.
  [[nodiscard]] Result<bool> try_add(Chunk chunk, std::uint32_t thread, HostCache::Pin& from, DeviceCache::Pin& to);
  /// Submits what has been gathered.
  [[nodiscard]] Status submit() noexcept;
  /// Submits, waits for what has been added so far, and lets go of it; chunks that have come are published. After a
  /// failure what was on its way is left to be abandoned.
  [[nodiscard]] Status drain() noexcept;
  /// Holds back later work on `consumer` until what has been submitted has come.
  [[nodiscard]] Status barrier(StreamRef consumer) noexcept { return consumer.wait_for(last_); }

  /// Time in which something was on its way, as it was seen from here, since the last call.
  [[nodiscard]] Duration take_busy() noexcept { return Duration{busy_ns_.exchange(0, std::memory_order_relaxed)}; }

 private:
  struct OnItsWay {
    Chunk chunk;
    std::uint32_t thread;
    HostCache::Pin from;
    DeviceCache::Pin* to;
  };
  struct Group {
    Event done;
    std::optional<Event> begun;  ///< While notes are taken, as are the times of `done`.
    Time started;
    std::vector<OnItsWay> chunks;
  };

  [[nodiscard]] bool is_due() noexcept;
  // All that follows is called under batch_mutex_.
  [[nodiscard]] Status send_gathered();
  /// Sends what is gathered, and closes its group.
  [[nodiscard]] Status send_all() noexcept;
  [[nodiscard]] Status add_copies(const HostChunk& from, const Slabs::Block& block);
  /// A copy from pageable memory, and zeros behind it up to `end` of the block: what lies one behind the other on the
  /// device goes there as one copy.
  [[nodiscard]] Status add_pageable(std::byte* to, const std::byte* from, std::size_t bytes, const std::byte* end);
  /// Begins a group: what is handed over next is its first chunk.
  [[nodiscard]] Status open_group();
  /// Submits what was handed over: it becomes a group.
  [[nodiscard]] Status close_group();
  /// Publishes what has come.
  [[nodiscard]] Status arrive_ready();
  void arrive(Group& group);
  void note(const Group& group) noexcept;
  [[nodiscard]] Result<Event> take_event() noexcept;

  LaneOptions options_;
  Slabs& slabs_;
  Stream stream_;

  std::mutex gather_mutex_;  ///< Guards what follows; may be taken under batch_mutex_.
  std::vector<OnItsWay> gathered_;
  std::size_t gathered_bytes_ = 0;

  std::mutex batch_mutex_;  ///< Guards what follows.
  CopyBatch batch_;
  Event last_;
  std::vector<OnItsWay> handed_;  ///< To the batch, since the last group.
  Time started_{};
  std::optional<Event> begun_;  ///< When the group of handed_ began.
  std::deque<Group> groups_;
  std::uint64_t closed_ = 0;   ///< Groups so far,
  std::uint64_t arrived_ = 0;  ///< and how many of them are no longer in groups_.
  std::vector<Event> events_;  ///< To be used again.
  std::uint64_t submissions_ = 0;
  Time seen_{};                   ///< Until then busy_ns_ has been counted.
  Recorder* recorder_ = nullptr;  ///< Null: no notes are taken.
  std::optional<Event> base_;     ///< What they are timed from, on the device,
  Time base_time_{};              ///< and when that was, on the host.

  std::atomic<std::int64_t> busy_ns_{0};
};

}  // namespace headrace::fetch
