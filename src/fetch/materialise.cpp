#include "fetch/materialise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// Read at once: a disk that is slow does not keep a fetch that is to end waiting for a second.
constexpr std::size_t kPopulateBytes = 16 * kMiB;

}  // namespace

void rethrow_at(const std::string& where) {
  const auto text = [&](const std::exception& error) { return where + ": " + error.what(); };
  try {
    throw;
  } catch (const UsageError& error) {
    throw UsageError(text(error), error.code());
  } catch (const DataError& error) {
    throw DataError(text(error));
  } catch (const DeviceError& error) {
    throw DeviceError(error.code(), text(error), error.native());
  } catch (const SystemError& error) {
    throw SystemError(error.code(), text(error), error.native());
  } catch (const Exception& error) {
    throw Exception(error.code(), text(error), error.native());
  } catch (const std::bad_alloc&) {
    throw Exception(Errc::out_of_memory, where + ": the host has no memory left");
  }
}

void Materialiser::check_stop() const {
  if (stop_.stop_requested()) throw Exception(Errc::cancelled, "the fetch was cancelled");
}

void Materialiser::made(Level level, Chunk chunk, std::size_t bytes, Step step, Time started) const noexcept {
  const Time ended = SteadyClock::now();
  counters(level).made(bytes, ended - started);
  if (notes_.recorder == nullptr) return;
  notes_.recorder->note({.chunk = chunk, .thread = notes_.thread, .step = step, .begin = started, .end = ended});
}

void Materialiser::settle() {
  if (lane_ == nullptr) return;
  const Status drained = lane_->drain();
  counters(Level::device).busy_ns.fetch_add(lane_->take_busy().count(), std::memory_order_relaxed);
  drained.or_throw("copying columns to the device");
}

void Materialiser::no_room(Level level, std::size_t bytes, const Budget& budget) const {
  check_stop();
  if (bytes > budget.limit()) {
    throw UsageError(fmt::format("it takes {}, more than the {} level's whole budget of {}", format_bytes(bytes),
                                 to_string(level), format_bytes(budget.limit())));
  }
  const auto text = fmt::format(
      "the {} level's budget of {} is in use, and {} more are needed; fetch fewer columns or "
      "fragments at once, stream them, or raise the budget",
      to_string(level), format_bytes(budget.limit()), format_bytes(bytes));
  if (level == Level::device) throw DeviceError(Errc::out_of_memory, text);
  throw Exception(Errc::out_of_memory, text);
}

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

void Materialiser::populate(const FileRange& range) const {
  for (std::size_t done = 0; done < range.bytes; done += kPopulateBytes) {
    check_stop();
    range.file->populate(range.offset + done, std::min(range.bytes - done, kPopulateBytes));
  }
}

DiskCache::Pin Materialiser::to_page_cache(Chunk chunk) {
  auto ranges = source_.ranges(chunk);
  if (ranges.empty()) return {};
  return find_or_make(levels_.disk, Level::disk, chunk, [&](DiskCache::Pin& pin) {
    std::size_t bytes = 0;
    for (const FileRange& range : ranges) bytes += range.bytes;
    const auto take = [&] { return levels_.disk_budget.try_charge(bytes); };
    if (!take()) {
      settle();
      if (bytes > levels_.disk_budget.limit() || !levels_.disk.make_room(take, stop_)) {
        no_room(Level::disk, bytes, levels_.disk_budget);
      }
    }
    pin->budget = &levels_.disk_budget;
    pin->charged = bytes;
    const Time started = SteadyClock::now();
    for (const FileRange& range : ranges) populate(range);
    pin->ranges = std::move(ranges);
    made(Level::disk, chunk, bytes, Step::read, started);
    pin.publish();
  });
}

void Materialiser::make_host(Chunk chunk, HostChunk& host) {
  const auto in_page_cache = to_page_cache(chunk);
  const Column& column = source_.columns()[chunk.column];
  const bool copies = levels_.options().host == HostKind::pinned;
  const bool strings = column.type.id == Type::dictionary;
  const ChunkShape bound = shape_bound(column.type, source_.fragments()[chunk.fragment].rows, column.nullable);
  // Room for what the source makes, and for what is made of that, before either is there: who waits holds nothing.
  const std::size_t read_bytes = source_.read_bytes(chunk);
  const std::size_t charged = read_bytes + (!copies && strings ? bound.values_bytes : 0);
  Budget& budget = levels_.cpu_budget;
  std::optional<Slabs::Block> block;
  const auto take = [&] {
    if (!budget.try_charge(charged)) return false;
    if (copies) block = levels_.host_slabs.try_take(bound.bytes());
    if (!copies || block) return true;
    budget.refund(charged);
    return false;
  };
  if (!take()) {
    settle();
    const std::size_t needed = charged + (copies ? bound.bytes() : 0);
    if (needed > budget.limit()) no_room(Level::cpu, needed, budget);
    // Slabs that became empty meanwhile may be of another size: again, as long as there are some.
    while (!levels_.cpu.make_room(take, stop_)) {
      if (levels_.host_slabs.trim()) continue;
      if (levels_.cpu.make_room(take, stop_)) break;
      if (!levels_.host_slabs.trim()) no_room(Level::cpu, needed, budget);
    }
  }
  host.budget = &budget;
  host.charged = charged;
  const Time started = SteadyClock::now();
  host.array = source_.read(chunk);
  if (copies) {
    host.view = put_in(source_, chunk, *host.array, block->data());
    host.block = *std::move(block);
    host.pinned = true;
    host.array.reset();
    budget.refund(std::exchange(host.charged, 0));
  } else {
    host.view = borrow(source_, chunk, *host.array, host.indices);
  }
  made(Level::cpu, chunk, shape_of(host.view).bytes(), Step::decode, started);
}

HostCache::Pin Materialiser::to_host(Chunk chunk) {
  try {
    return find_or_make(levels_.cpu, Level::cpu, chunk, [&](HostCache::Pin& pin) {
      make_host(chunk, *pin);
      pin.publish();
    });
  } catch (...) {
    rethrow_at(source_.describe(chunk));
  }
}

void Materialiser::copy_to_device(Chunk chunk, DeviceCache::Pin& pin) {
  auto from = to_host(chunk);
  const std::size_t bytes = shape_of(from->view).bytes();
  auto block = levels_.device_slabs.try_take(bytes);
  if (!block) {
    // The columns of this very fetch stay, so there is nothing to wait for: what can go, goes.
    settle();
    do {
      while (!(block = levels_.device_slabs.try_take(bytes)) && levels_.on_device.evict_one()) check_stop();
    } while (!block && levels_.device_slabs.trim());
    if (!block) block = levels_.device_slabs.try_take(bytes);  // another thread may have trimmed
  }
  if (!block) {
    try {
      no_room(Level::device, bytes, levels_.device_budget);
    } catch (...) {
      rethrow_at(source_.describe(chunk));
    }
  }
  pin->block = *std::move(block);
  lane_->add(chunk, std::move(from), pin).or_throw("copying " + source_.describe(chunk));
  LevelCounters& count = counters(Level::device);
  count.made(bytes, lane_->take_busy());
}

void Materialiser::to_device(Chunk chunk, DeviceCache::Pin& pin) {
  while (true) {
    check_stop();
    auto look = levels_.on_device.look(id(chunk));
    if (look.found == DeviceCache::Found::being_made) {
      settle();
      levels_.on_device.wait_while_made(id(chunk), stop_);
      continue;
    }
    pin = std::move(look.pin);
    pin.keep();
    if (look.found == DeviceCache::Found::absent) return copy_to_device(chunk, pin);
    counters(Level::device).hits.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

}  // namespace headrace::fetch
