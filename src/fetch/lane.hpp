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
  /// Bytes of gathered chunks that are handed to the batch and flushed together; 0: each chunk at once, and the batch
  /// decides when to flush.
  std::size_t gather_bytes = 0;
  /// Threads that copy chunks from pageable memory.
  std::uint32_t staging_threads = 1;

  bool operator==(const LaneOptions&) const = default;
};

/// A path to the device: a stream and a batch of copies on it. It keeps the sources of copies in flight, and publishes
/// chunks whose copies are done. A lane belongs to one thread or to all threads of a fetch; while one submits, others
/// can add. Fetches reuse lanes.
class Lane {
 public:
  /// @param slabs  the allocator of device blocks; outlives the lane.
  /// Throws DeviceError when the device refuses.
  Lane(Device device, Slabs& slabs, const LaneOptions& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /// Waits for copies in flight, because the lane owns the chunks that they read and write.
  ~Lane() { static_cast<void>(stream_.wait()); }

  [[nodiscard]] const LaneOptions& options() const noexcept { return options_; }
  /// Records all later transfers in `recorder`; null stops recording. Call it only while no copy is in flight. It may
  /// wait for the device. Throws DeviceError when the device refuses.
  void take_notes(Recorder* recorder);
  /// Takes a block for a chunk and adds the copy from `from` to `to`, whose maker is the caller. Returns false, without
  /// any effect, if the slabs have no room. `to` must not move until it is published. Submits when enough is gathered.
  /// Chunks added in sequence mostly get adjacent blocks.
  /// @param thread  the thread's number in the fetch, for the recorder.
  [[nodiscard]] Result<bool> try_add(Chunk chunk, std::uint32_t thread, HostCache::Pin& from, DeviceCache::Pin& to);
  /// Submits what has been gathered.
  [[nodiscard]] Status submit() noexcept;
  /// Submits, waits for all copies added so far, and publishes their chunks. After a failure, the chunks in flight are
  /// left to be abandoned.
  [[nodiscard]] Status drain() noexcept;
  /// Holds back later work on `consumer` until all submitted copies are done.
  [[nodiscard]] Status barrier(StreamRef consumer) noexcept { return consumer.wait_for(last_); }

  /// Time since the last call during which copies were in flight, as observed by the host.
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
    std::optional<Event> begun;  ///< Set while transfers are recorded; then `done` has timing, too.
    Time started;
    std::vector<OnItsWay> chunks;
  };

  [[nodiscard]] bool is_due() noexcept;
  // The following members are called under batch_mutex_.
  [[nodiscard]] Status send_gathered();
  /// Sends the gathered chunks and closes their group.
  [[nodiscard]] Status send_all() noexcept;
  [[nodiscard]] Status add_copies(const HostChunk& from, const Slabs::Block& block);
  /// Adds a copy from pageable memory, and zeros after it up to `end`: without gaps, adjacent blocks are sent as one
  /// copy.
  [[nodiscard]] Status add_pageable(std::byte* to, const std::byte* from, std::size_t bytes, const std::byte* end);
  /// Begins a group with the next chunk that is handed to the batch.
  [[nodiscard]] Status open_group();
  /// Submits the chunks handed to the batch, which become a group.
  [[nodiscard]] Status close_group();
  /// Publishes the chunks whose copies are done.
  [[nodiscard]] Status arrive_ready();
  void arrive(Group& group);
  void note(const Group& group) noexcept;
  [[nodiscard]] Result<Event> take_event() noexcept;

  LaneOptions options_;
  Slabs& slabs_;
  Stream stream_;

  std::mutex gather_mutex_;  ///< Guards the next two members; may be taken under batch_mutex_.
  std::vector<OnItsWay> gathered_;
  std::size_t gathered_bytes_ = 0;

  std::mutex batch_mutex_;  ///< Guards the following members.
  CopyBatch batch_;
  Event last_;
  std::vector<OnItsWay> handed_;  ///< Chunks handed to the batch since the last group.
  Time started_{};
  std::optional<Event> begun_;  ///< Start event of the group of handed_.
  std::deque<Group> groups_;
  std::uint64_t closed_ = 0;   ///< Groups closed so far.
  std::uint64_t arrived_ = 0;  ///< Closed groups that have left groups_.
  std::vector<Event> events_;  ///< Spare events.
  std::uint64_t submissions_ = 0;
  Time seen_{};                   ///< End of the time that busy_ns_ covers.
  Recorder* recorder_ = nullptr;  ///< Null: transfers are not recorded.
  std::optional<Event> base_;     ///< Reference event for timing on the device.
  Time base_time_{};              ///< The same point in time on the host.

  std::atomic<std::int64_t> busy_ns_{0};
};

}  // namespace headrace::fetch
