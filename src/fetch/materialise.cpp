#include "fetch/materialise.hpp"

#include <fmt/format.h>

#include <new>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

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
  } catch (const DictionaryFull&) {
    throw;  // its message names the column, and no single chunk is at fault
  } catch (const Exception& error) {
    throw Exception(error.code(), text(error), error.native());
  } catch (const std::bad_alloc&) {
    throw Exception(Errc::out_of_memory, where + ": the host is out of memory");
  }
}

void Materialiser::check_stop() const {
  if (stop_.stop_requested()) throw Exception(Errc::cancelled, "the fetch was cancelled");
}

void Materialiser::made(Level level, Chunk chunk, std::size_t bytes, Step step, Time began, Time ended) const noexcept {
  counters(level).made(bytes, ended - began);
  if (notes_.recorder == nullptr) return;
  notes_.recorder->note({.chunk = chunk, .thread = notes_.thread, .step = step, .begin = began, .end = ended});
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
    throw UsageError(fmt::format("the chunk takes {}, more than the {} level's whole budget of {}", format_bytes(bytes),
                                 to_string(level), format_bytes(budget.limit())));
  }
  const auto text = fmt::format(
      "the {} level's budget of {} is in use, and {} more are needed; fetch fewer columns or "
      "fragments at once, stream them, or raise the budget",
      to_string(level), format_bytes(budget.limit()), format_bytes(bytes));
  if (level == Level::device) throw DeviceError(Errc::out_of_memory, text);
  throw Exception(Errc::out_of_memory, text);
}

bool Materialiser::try_copy(Chunk chunk, HostCache::Pin& from, DeviceCache::Pin& pin) {
  auto added = lane_->try_add(chunk, notes_.thread, from, pin);
  return added ? *added : std::move(added).or_throw("copying " + source_.describe(chunk));
}

void Materialiser::copy_to_device(Chunk chunk, HostCache::Pin from, DeviceCache::Pin& pin) {
  const std::size_t bytes = shape_of(from->view).bytes();
  bool added = try_copy(chunk, from, pin);
  if (!added) {
    // This fetch keeps its own columns, so waiting would not help: evicts everything that it can.
    settle();
    do {
      while (!(added = try_copy(chunk, from, pin)) && levels_.on_device.evict_one()) check_stop();
    } while (!added && levels_.device_slabs.trim());
  }
  if (!added && !try_copy(chunk, from, pin)) {  // another thread may have trimmed
    try {
      no_room(Level::device, bytes, levels_.device_budget);
    } catch (...) {
      rethrow_at(source_.describe(chunk));
    }
  }
  counters(Level::device).made(bytes, lane_->take_busy());
}

void Materialiser::one_to_device(Chunk chunk, DeviceCache::Pin& pin) {
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
    if (look.found == DeviceCache::Found::absent) return copy_to_device(chunk, one_to_host(chunk), pin);
    counters(Level::device).hits.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void Materialiser::to_device(std::span<const ToDevice> wanted) {
  check_stop();
  std::vector<Chunk> chunks;
  std::vector<DeviceCache::Pin*> pins;
  for (const ToDevice& one : wanted) {
    if (wanted.size() == 1) break;
    auto look = levels_.on_device.look(id(one.chunk));
    if (look.found == DeviceCache::Found::being_made) continue;
    *one.pin = std::move(look.pin);
    one.pin->keep();
    if (look.found == DeviceCache::Found::ready) {
      counters(Level::device).hits.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    chunks.push_back(one.chunk);
    pins.push_back(one.pin);
  }
  // First the chunks that need no waiting, because a thread that waits must not hold a chunk of the CPU level.
  auto from = try_host(chunks);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    from[i].empty() ? left.push_back(i) : copy_to_device(chunks[i], std::move(from[i]), *pins[i]);
  }
  for (const std::size_t i : left) copy_to_device(chunks[i], one_to_host(chunks[i]), *pins[i]);
  for (const ToDevice& one : wanted) {
    if (one.pin->empty()) one_to_device(one.chunk, *one.pin);
  }
}

}  // namespace headrace::fetch
