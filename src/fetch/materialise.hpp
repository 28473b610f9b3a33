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

/// What came through a level, counted by all threads of a fetch.
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

/// A chunk that is to come to the device, and where its pin goes.
struct ToDevice {
  Chunk chunk;
  DeviceCache::Pin* pin;  ///< Stays where it is.
};

/// A thread of a fetch, bringing chunks down the levels. Before it waits for anything it lets go of what it holds: it
/// drains its lane.
class Materialiser {
 public:
  /// @param lane  null where nothing goes to the device.
  Materialiser(Levels::State& levels, Source& source, Counters& counters, std::stop_token stop, Lane* lane,
               Notes notes) noexcept
      : levels_(levels), source_(source), counters_(counters), stop_(std::move(stop)), lane_(lane), notes_(notes) {}

  /// Chunks of one fragment on the CPU level, made there if need be, those that can be by one read of the source. Pins
  /// are kept. Throws what says file, row group and column.
  [[nodiscard]] std::vector<HostCache::Pin> to_host(std::span<const Chunk> chunks);
  /// Pins chunks of one fragment on the device, kept. Where one was not there, its copy is on the lane, and it is
  /// published once that is done. Throws as to_host() does.
  void to_device(std::span<const ToDevice> wanted);
  /// Waits for the lane's copies.
  void settle();

 private:
  [[nodiscard]] ChunkId id(Chunk chunk) const noexcept { return {source_.id(), chunk}; }
  [[nodiscard]] LevelCounters& counters(Level level) const noexcept {
    return counters_[static_cast<std::size_t>(level)];
  }
  void check_stop() const;
  /// Counts what has been made, and notes when.
  void made(Level level, Chunk chunk, std::size_t bytes, Step step, Time began, Time ended) const noexcept;
  /// What `look` finds in a cache, as a pin; where it has to be made, make(pin) does.
  template <class Cache, class Make>
  [[nodiscard]] typename Cache::Pin find_or_make(Cache& cache, Level level, Chunk chunk, Make make);
  [[nodiscard]] DiskCache::Pin to_page_cache(Chunk chunk);
  /// The same without waiting for anything: nothing where it would have to.
  [[nodiscard]] std::optional<DiskCache::Pin> try_page_cache(Chunk chunk);
  void populate(Chunk chunk, std::vector<FileRange> ranges, std::size_t bytes, DiskCache::Pin& pin) const;

  /// What a chunk takes on the CPU level: as the source gives it, and in a block.
  struct HostRoom {
    std::size_t charged;
    std::size_t block_bytes;  ///< 0: none.
  };
  [[nodiscard]] HostRoom room_of(Chunk chunk) const noexcept;
  /// Takes room for a chunk, for what the source makes and for what is made of that; false where there is none.
  [[nodiscard]] bool try_room(const HostRoom& room, HostChunk& host) const;
  void wait_for_room(Chunk chunk, HostChunk& host);
  /// Makes the CPU level's chunk of what the source gave.
  void put(Chunk chunk, OwnedArray array, HostChunk& host) const;
  /// Reads the chunk, for which there is room, and puts it there. False where its column's dictionary had no room:
  /// there may be some now, and the chunk's own has to be taken again. Throws where there will be none.
  [[nodiscard]] bool try_put(Chunk chunk, HostChunk& host);
  [[nodiscard]] HostCache::Pin one_to_host(Chunk chunk);
  /// Pins those chunks of one fragment that are there or can be made at once, without waiting; other pins are empty.
  [[nodiscard]] std::vector<HostCache::Pin> try_host(std::span<const Chunk> chunks);
  [[nodiscard]] std::vector<OwnedArray> read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns);
  /// Makes chunks by one read and publishes them. Where one cannot be, its pin is emptied: somebody else may make it.
  void make_together(std::span<const Chunk> chunks, std::span<HostCache::Pin*> pins);

  void one_to_device(Chunk chunk, DeviceCache::Pin& pin);
  /// Whether there was room on the device.
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
