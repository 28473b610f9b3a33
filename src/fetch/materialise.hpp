#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <stop_token>

#include "fetch/lane.hpp"
#include "fetch/levels_state.hpp"
#include "fetch/recorder.hpp"
#include "headrace/base/clock.hpp"
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

/// A thread of a fetch, bringing chunks down the levels. Before it waits for anything it lets go of what it holds: it
/// drains its lane.
class Materialiser {
 public:
  /// @param lane  null where nothing goes to the device.
  Materialiser(Levels::State& levels, Source& source, Counters& counters, std::stop_token stop, Lane* lane,
               Notes notes) noexcept
      : levels_(levels), source_(source), counters_(counters), stop_(std::move(stop)), lane_(lane), notes_(notes) {}

  /// The chunk on the CPU level, made there if need be. Throws what says file, row group and column.
  [[nodiscard]] HostCache::Pin to_host(Chunk chunk);
  /// Pins the chunk on the device in `pin`, which must stay where it is. Where it was not there, its copy is on the
  /// lane, and the chunk is published once that is done. Throws as to_host() does.
  void to_device(Chunk chunk, DeviceCache::Pin& pin);
  /// Waits for the lane's copies.
  void settle();

 private:
  [[nodiscard]] ChunkId id(Chunk chunk) const noexcept { return {source_.id(), chunk}; }
  [[nodiscard]] LevelCounters& counters(Level level) const noexcept {
    return counters_[static_cast<std::size_t>(level)];
  }
  void check_stop() const;
  /// Counts what has been made from `started` until now, and notes when.
  void made(Level level, Chunk chunk, std::size_t bytes, Step step, Time started) const noexcept;
  /// What `look` finds in a cache, as a pin; where it has to be made, make(pin) does.
  template <class Cache, class Make>
  [[nodiscard]] typename Cache::Pin find_or_make(Cache& cache, Level level, Chunk chunk, Make make);
  [[nodiscard]] DiskCache::Pin to_page_cache(Chunk chunk);
  void populate(const FileRange& range) const;
  void make_host(Chunk chunk, HostChunk& host);
  void copy_to_device(Chunk chunk, DeviceCache::Pin& pin);
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
