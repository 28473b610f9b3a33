#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "fetch/lane.hpp"
#include "fetch/levels_state.hpp"
#include "fetch/recorder.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Traffic through a level, summed over all threads of a fetch.
struct LevelCounters {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> chunks{0};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::int64_t> busy_ns{0};

  void made(std::size_t count, Duration time) noexcept {
    bytes.fetch_add(count, std::memory_order_relaxed);
    chunks.fetch_add(1, std::memory_order_relaxed);
    busy_ns.fetch_add(time.count(), std::memory_order_relaxed);
  }
};
using Counters = std::array<LevelCounters, kLevelCount>;

/// A chunk to bring to the device, and the destination of its pin.
struct ToDevice {
  Chunk chunk;
  DeviceCache::Pin* pin;  ///< Must not move.
};

/// One thread's part of a fetch: brings chunks down the levels. Before it waits, it releases what it holds by draining
/// its lane.
class Materialiser {
 public:
  /// @param lane  null if no chunk goes to the device.
  Materialiser(Levels::State& levels, Source& source, Counters& counters, std::stop_token stop, Lane* lane,
               Notes notes) noexcept
      : levels_(levels), source_(source), counters_(counters), stop_(std::move(stop)), lane_(lane), notes_(notes) {}

  /// Brings chunks of one fragment to the CPU level, if possible with one read of the source, and returns long-lived
  /// pins. Throws an exception that names file, row group and column.
  [[nodiscard]] std::vector<HostCache::Pin> to_host(std::span<const Chunk> chunks);
  /// Sets long-lived pins on chunks of one fragment on the device. The lane copies absent chunks and publishes each
  /// when its copy is done. Throws as to_host() does.
  void to_device(std::span<const ToDevice> wanted);
  /// Waits for the lane's copies.
  void settle();

 private:
  [[nodiscard]] ChunkId id(Chunk chunk) const noexcept { return {source_.id(), chunk}; }
  [[nodiscard]] LevelCounters& counters(Level level) const noexcept {
    return counters_[static_cast<std::size_t>(level)];
  }
  void check_stop() const;
  /// Counts a chunk that was made, and records when.
  void made(Level level, Chunk chunk, std::size_t bytes, Step step, Time began, Time ended) const noexcept;
  /// Returns a pin of a chunk in `cache`; calls make(pin) if the chunk is absent.
  template <class Cache, class Make>
  [[nodiscard]] typename Cache::Pin find_or_make(Cache& cache, Level level, Chunk chunk, Make make);
  [[nodiscard]] DiskCache::Pin to_page_cache(Chunk chunk);
  /// The same without waiting; empty if it would have to wait.
  [[nodiscard]] std::optional<DiskCache::Pin> try_page_cache(Chunk chunk);
  void populate(Chunk chunk, std::vector<FileRange> ranges, std::size_t bytes, DiskCache::Pin& pin) const;

  /// Room that a chunk needs on the CPU level: for the source's array, and for its block.
  struct HostRoom {
    std::size_t charged;
    std::size_t block_bytes;  ///< 0: no block.
  };
  [[nodiscard]] HostRoom room_of(Chunk chunk) const noexcept;
  /// Takes room for a chunk, both for the source's array and for its block. Returns false if there is no room.
  [[nodiscard]] bool try_room(const HostRoom& room, HostChunk& host) const;
  void wait_for_room(Chunk chunk, HostChunk& host);
  /// Makes the CPU level's chunk from the source's array.
  void put(Chunk chunk, OwnedArray array, HostChunk& host) const;
  /// Reads the chunk into the room taken for it. Returns false if its column's dictionary had no room but may have now;
  /// the caller must take the chunk's room again. Throws if there cannot be room.
  [[nodiscard]] bool try_put(Chunk chunk, HostChunk& host);
  [[nodiscard]] HostCache::Pin one_to_host(Chunk chunk);
  /// Pins the chunks of one fragment that are ready or can be made without waiting; other pins stay empty.
  [[nodiscard]] std::vector<HostCache::Pin> try_host(std::span<const Chunk> chunks);
  [[nodiscard]] std::vector<OwnedArray> read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns);
  /// Makes chunks with one read and publishes them. Empties the pins of chunks that it cannot make, so that another
  /// thread may make them.
  void make_together(std::span<const Chunk> chunks, std::span<HostCache::Pin*> pins);

  void one_to_device(Chunk chunk, DeviceCache::Pin& pin);
  /// Returns whether the device had room.
  [[nodiscard]] bool try_copy(Chunk chunk, HostCache::Pin& from, DeviceCache::Pin& pin);
  void copy_to_device(Chunk chunk, HostCache::Pin from, DeviceCache::Pin& pin);
  [[noreturn]] void no_room(Level level, std::size_t bytes, const Budget& budget) const;

  Levels::State& levels_;
  Source& source_;
  Counters& counters_;
  std::stop_token stop_;
  Lane* lane_;
  Notes notes_;
};

/// Throws the exception being handled again, with "<where>: " before its text.
[[noreturn]] void rethrow_at(const std::string& where);

}  // namespace headrace::fetch
