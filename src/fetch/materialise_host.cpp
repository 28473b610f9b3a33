#include <algorithm>
#include <chrono>
#include <utility>

#include "fetch/materialise.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

// The steps of a fetch thread down to the CPU level.
namespace headrace::fetch {

namespace {

/// Bytes per read: even on a slow disk, a cancelled fetch ends within a second.
constexpr std::size_t kPopulateAtOnce = 16 * kMiB;

std::size_t bytes_of(const std::vector<FileRange>& ranges) noexcept {
  std::size_t bytes = 0;
  for (const FileRange& range : ranges) bytes += range.bytes;
  return bytes;
}

}  // namespace

template <class Cache, class Make>
typename Cache::Pin Materialiser::find_or_make(Cache& cache, Level level, Chunk chunk, Make make) {
  while (true) {
    check_stop();
    auto [found, pin] = cache.look(id(chunk));
    if (found == Cache::Found::being_made) {
      settle();
      cache.wait_while_made(id(chunk), stop_);
      continue;
    }
    if (found == Cache::Found::ready) {
      counters(level).hits.fetch_add(1, std::memory_order_relaxed);
    } else {
      make(pin);
    }
    return std::move(pin);
  }
}

void Materialiser::populate(Chunk chunk, std::vector<FileRange> ranges, std::size_t bytes, DiskCache::Pin& pin) const {
  pin->budget = &levels_.disk_budget;
  pin->charged = bytes;
  const Time started = SteadyClock::now();
  for (const FileRange& range : ranges) {
    for (std::size_t done = 0; done < range.bytes; done += kPopulateAtOnce) {
      check_stop();
      range.file->populate(range.offset + done, std::min(range.bytes - done, kPopulateAtOnce));
    }
  }
  pin->ranges = std::move(ranges);
  made(Level::disk, chunk, bytes, Step::read, started, SteadyClock::now());
  pin.publish();
}

DiskCache::Pin Materialiser::to_page_cache(Chunk chunk) {
  auto ranges = source_.ranges(chunk);
  if (ranges.empty()) return {};
  return find_or_make(levels_.disk, Level::disk, chunk, [&](DiskCache::Pin& pin) {
    const std::size_t bytes = bytes_of(ranges);
    const auto take = [&] { return levels_.disk_budget.try_charge(bytes); };
    if (!take()) {
      settle();
      if (bytes > levels_.disk_budget.limit() || !levels_.disk.make_room(take, stop_)) {
        no_room(Level::disk, bytes, levels_.disk_budget);
      }
    }
    populate(chunk, std::move(ranges), bytes, pin);
  });
}

std::optional<DiskCache::Pin> Materialiser::try_page_cache(Chunk chunk) {
  auto ranges = source_.ranges(chunk);
  if (ranges.empty()) return DiskCache::Pin();
  auto [found, pin] = levels_.disk.look(id(chunk));
  if (found == DiskCache::Found::being_made) return std::nullopt;
  if (found == DiskCache::Found::ready) {
    counters(Level::disk).hits.fetch_add(1, std::memory_order_relaxed);
  } else {
    const std::size_t bytes = bytes_of(ranges);
    if (!levels_.disk_budget.try_charge(bytes)) return std::nullopt;
    populate(chunk, std::move(ranges), bytes, pin);
  }
  return std::move(pin);
}

Materialiser::HostRoom Materialiser::room_of(Chunk chunk) const noexcept {
  const DataType type = source_.type_of(chunk.column);
  const bool nullable = source_.column_of(chunk.column).nullable;
  const ChunkShape bound = shape_bound(type, source_.fragments()[chunk.fragment].rows, nullable);
  const std::size_t read_bytes = source_.read_bytes(chunk);
  if (levels_.options().host == HostKind::pinned) return {.charged = read_bytes, .block_bytes = bound.bytes()};
  const bool strings = type.id == Type::dictionary;
  return {.charged = read_bytes + (strings ? bound.bytes() : 0), .block_bytes = 0};
}

bool Materialiser::try_room(const HostRoom& room, HostChunk& host) const {
  if (!levels_.cpu_budget.try_charge(room.charged)) return false;
  if (room.block_bytes > 0) {
    auto block = levels_.host_slabs.try_take(room.block_bytes);
    if (!block) {
      levels_.cpu_budget.refund(room.charged);
      return false;
    }
    host.block = *std::move(block);
  }
  host.budget = &levels_.cpu_budget;
  host.charged = room.charged;
  return true;
}

void Materialiser::wait_for_room(Chunk chunk, HostChunk& host) {
  // Takes room for the source's array and the block before either exists, because a waiting thread must hold nothing.
  const HostRoom room = room_of(chunk);
  const auto take = [&] { return try_room(room, host); };
  if (take()) return;
  settle();
  const Budget& budget = levels_.cpu_budget;
  const std::size_t needed = room.charged + room.block_bytes;
  if (needed > budget.limit()) no_room(Level::cpu, needed, budget);
  // Empty slabs may have the wrong size: trims them and tries again while there are any.
  while (!levels_.cpu.make_room(take, stop_)) {
    if (levels_.host_slabs.trim()) continue;
    if (levels_.cpu.make_room(take, stop_)) break;
    if (!levels_.host_slabs.trim()) no_room(Level::cpu, needed, budget);
  }
}

void Materialiser::put(Chunk chunk, OwnedArray array, HostChunk& host) const {
  host.array = std::move(array);
  if (levels_.options().host == HostKind::pageable) {
    host.view = borrow(source_, chunk, *host.array, host.indices, host.validity);
    return;
  }
  host.view = put_in(source_, chunk, *host.array, host.block.data());
  host.pinned = true;
  host.array.reset();
  levels_.cpu_budget.refund(std::exchange(host.charged, 0));
}

bool Materialiser::try_put(Chunk chunk, HostChunk& host) {
  try {
    put(chunk, source_.read(chunk), host);
    return true;
  } catch (const DictionaryFull& full) {
    host = HostChunk();  // a thread that waits holds no room
    settle();
    const auto dictionary = source_.dictionary(chunk.column);
    const HostRoom room = room_of(chunk);
    const std::size_t needed = room.charged + room.block_bytes + full.bytes() + dictionary->bytes();
    const auto reserve = [&] { return dictionary->try_reserve(full.bytes()); };
    if (needed > levels_.cpu_budget.limit() || !levels_.cpu.make_room(reserve, stop_)) {
      check_stop();
      throw;
    }
    return false;  // the dictionary grows before it asks again, so the retries end
  }
}

HostCache::Pin Materialiser::one_to_host(Chunk chunk) {
  try {
    return find_or_make(levels_.cpu, Level::cpu, chunk, [&](HostCache::Pin& pin) {
      const auto in_page_cache = to_page_cache(chunk);
      Time started{};
      do {
        wait_for_room(chunk, *pin);
        started = SteadyClock::now();
      } while (!try_put(chunk, *pin));
      source_.require_unchanged(chunk.fragment);
      made(Level::cpu, chunk, shape_of(pin->view).bytes(), Step::decode, started, SteadyClock::now());
      pin.publish();
    });
  } catch (...) {
    source_.require_unchanged(chunk.fragment);  // a changed file explains the failure
    rethrow_at(source_.describe(chunk));
  }
}

std::vector<HostCache::Pin> Materialiser::try_host(std::span<const Chunk> chunks) {
  std::vector<HostCache::Pin> pins(chunks.size());
  std::vector<Chunk> absent;
  std::vector<HostCache::Pin*> absent_pins;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    auto look = levels_.cpu.look(id(chunks[i]));
    pins[i] = std::move(look.pin);
    if (look.found == HostCache::Found::ready) counters(Level::cpu).hits.fetch_add(1, std::memory_order_relaxed);
    if (look.found != HostCache::Found::absent) continue;
    absent.push_back(chunks[i]);
    absent_pins.push_back(&pins[i]);
  }
  if (!absent.empty()) make_together(absent, absent_pins);
  return pins;
}

/// Chunks that gain nothing from a joint read are read one by one, so that a cancelled fetch ends early.
std::vector<OwnedArray> Materialiser::read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns) {
  if (source_.read_bytes({.fragment = fragment, .column = columns.front()}) > 0) {
    return source_.read_columns(fragment, columns);
  }
  std::vector<OwnedArray> arrays;
  for (const std::uint32_t column : columns) {
    check_stop();
    arrays.push_back(source_.read({.fragment = fragment, .column = column}));
  }
  return arrays;
}

void Materialiser::make_together(std::span<const Chunk> chunks, std::span<HostCache::Pin*> pins) {
  std::vector<DiskCache::Pin> in_page_cache;
  std::vector<std::uint32_t> columns;
  std::vector<std::size_t> taken;
  try {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      check_stop();
      auto bytes = try_page_cache(chunks[i]);
      if (!bytes || !try_room(room_of(chunks[i]), **pins[i])) {
        pins[i]->reset();
        continue;
      }
      in_page_cache.push_back(*std::move(bytes));
      columns.push_back(chunks[i].column);
      taken.push_back(i);
    }
    if (columns.empty()) return;
    const Time started = SteadyClock::now();
    auto arrays = read_columns(chunks[0].fragment, columns);
    std::size_t all = 0;
    for (std::size_t k = 0; k < taken.size(); ++k) {
      HostChunk& host = **pins[taken[k]];
      put(chunks[taken[k]], std::move(arrays[k]), host);
      all += shape_of(host.view).bytes();
    }
    source_.require_unchanged(chunks[0].fragment);
    // Divides the time among the chunks in proportion to their bytes.
    const Duration took = SteadyClock::now() - started;
    const auto after = [&](std::size_t bytes) {
      const double share = static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(all, 1));
      return started + std::chrono::duration_cast<Duration>(took * share);
    };
    std::size_t before = 0;
    for (const std::size_t i : taken) {
      const std::size_t bytes = shape_of((*pins[i])->view).bytes();
      made(Level::cpu, chunks[i], bytes, Step::decode, after(before), after(before + bytes));
      before += bytes;
      pins[i]->publish();
    }
  } catch (...) {
    // The caller makes the chunks one by one, and so finds the bad one.
    for (HostCache::Pin* const pin : pins) pin->reset();
  }
}

std::vector<HostCache::Pin> Materialiser::to_host(std::span<const Chunk> chunks) {
  auto pins = chunks.size() > 1 ? try_host(chunks) : std::vector<HostCache::Pin>(chunks.size());
  for (HostCache::Pin& pin : pins) {
    if (!pin.empty()) pin.keep();
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!pins[i].empty()) continue;
    pins[i] = one_to_host(chunks[i]);
    pins[i].keep();
  }
  return pins;
}

}  // namespace headrace::fetch
