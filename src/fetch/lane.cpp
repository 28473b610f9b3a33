#include "fetch/lane.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::fetch {

namespace {

/// A lane stages only pageable chunks. A thread that stages alone fills larger slots, because it submits slot by slot.
CopyBatchOptions batch_options(const LaneOptions& options) {
  StagingOptions staging{.threads = options.staging_threads};
  if (staging.threads == 1) staging.slot_bytes = kMiB;
  return {.flush_bytes = options.flush_bytes, .staging_bytes = 8 * kKiB, .staging = staging};
}

constexpr std::array<std::byte, Slabs::kAlignment> kZeros{};

}  // namespace

Lane::Lane(Device device, Slabs& slabs, const LaneOptions& options)
    : options_(options), slabs_(slabs), stream_(device), batch_(stream_, batch_options(options)), last_(device) {}

void Lane::take_notes(Recorder* recorder) {
  recorder_ = recorder;
  base_.reset();
  if (recorder_ == nullptr) return;
  base_.emplace(stream_.device(), EventTiming::on);
  stream_.record(*base_).or_throw("timing the transfers of a fetch");
  base_->wait().or_throw("timing the transfers of a fetch");
  base_time_ = SteadyClock::now();
}

Status Lane::open_group() {
  started_ = SteadyClock::now();
  if (recorder_ == nullptr) return {};
  auto event = Event::create(stream_.device(), EventTiming::on);
  if (!event) return event.error();
  begun_ = *std::move(event);
  batch_.mark_next(*begun_);
  return {};
}

Status Lane::add_pageable(std::byte* to, const std::byte* from, std::size_t bytes, const std::byte* end) {
  if (const Status added = batch_.add(to, from, bytes, CopySource::pageable); !added) return added;
  return batch_.add(to + bytes, kZeros.data(), static_cast<std::size_t>(end - (to + bytes)), CopySource::pageable);
}

Status Lane::add_copies(const HostChunk& from, const Slabs::Block& block) {
  const ChunkShape shape = shape_of(from.view);
  std::byte* const to = block.data();
  const std::byte* const values = values_from(from.view);
  if (from.pinned) {
    const std::size_t bytes = shape.validity_bytes > 0 ? shape.bytes() : shape.values_bytes;
    return batch_.add(to, values, bytes, CopySource::stable);
  }
  const std::byte* const end = to + block.bytes();
  if (shape.validity_bytes == 0) return add_pageable(to, values, shape.values_bytes, end);
  std::byte* const validity = to + shape.validity_at;
  if (const Status added = add_pageable(to, values, shape.values_bytes, validity); !added) return added;
  return add_pageable(validity, validity_from(from.view), shape.validity_bytes, end);
}

Result<bool> Lane::try_add(Chunk chunk, std::uint32_t thread, HostCache::Pin& from, DeviceCache::Pin& to) {
  {
    const std::lock_guard lock(gather_mutex_);
    const ChunkShape shape = shape_of(from->view);
    auto block = slabs_.try_take(shape.bytes());
    if (!block) return false;
    to->block = *std::move(block);
    to->view = view_in(from->view, shape, to->block.data());
    gathered_bytes_ += to->block.bytes();
    gathered_.push_back({chunk, thread, std::move(from), &to});
  }
  // The sending thread checks again before it stops, so a failed try_lock leaves nothing behind.
  while (is_due()) {
    const std::unique_lock lock(batch_mutex_, std::try_to_lock);
    if (!lock) break;
    if (const Status sent = send_gathered(); !sent) return sent.error();
    if (const Status arrived = arrive_ready(); !arrived) return arrived.error();
  }
  return true;
}

bool Lane::is_due() noexcept {
  const std::lock_guard lock(gather_mutex_);
  return !gathered_.empty() && gathered_bytes_ >= options_.gather_bytes;
}

Status Lane::send_gathered() {
  std::vector<OnItsWay> chunks;
  {
    const std::lock_guard lock(gather_mutex_);
    chunks.swap(gathered_);
    gathered_bytes_ = 0;
  }
  for (OnItsWay& chunk : chunks) {
    if (handed_.empty()) {
      if (const Status opened = open_group(); !opened) return opened;
    }
    handed_.push_back(std::move(chunk));
    const OnItsWay& one = handed_.back();
    if (const Status added = add_copies(*one.from, (*one.to)->block); !added) return added;
    // If the batch flushed within a chunk, some of the chunk's copies are still unsubmitted.
    if (batch_.statistics().submissions == submissions_) continue;
    if (const Status closed = close_group(); !closed) return closed;
  }
  return options_.gather_bytes > 0 ? close_group() : Status{};
}

Status Lane::arrive_ready() {
  while (!groups_.empty()) {
    const auto ready = groups_.front().done.ready();
    if (!ready) return ready.error();
    if (!*ready) break;
    arrive(groups_.front());
  }
  return {};
}

Result<Event> Lane::take_event() noexcept {
  if (recorder_ != nullptr) return Event::create(stream_.device(), EventTiming::on);
  if (events_.empty()) return Event::create(stream_.device());
  Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

Status Lane::close_group() {
  if (const Status flushed = batch_.flush(); !flushed) return flushed;
  submissions_ = batch_.statistics().submissions;
  if (handed_.empty()) return {};
  events_.reserve(events_.size() + groups_.size() + 1);  // so that an arriving group allocates nothing
  auto event = take_event();
  if (!event) return event.error();
  if (const Status recorded = stream_.record(*event); !recorded) return recorded;
  groups_.push_back({.done = *std::move(event),
                     .begun = std::exchange(begun_, std::nullopt),
                     .started = started_,
                     .chunks = std::move(handed_)});
  handed_.clear();
  ++closed_;
  return {};
}

void Lane::arrive(Group& group) {
  const Time now = SteadyClock::now();
  busy_ns_.fetch_add((now - std::max(seen_, group.started)).count(), std::memory_order_relaxed);
  seen_ = now;
  note(group);
  for (OnItsWay& chunk : group.chunks) {
    chunk.to->publish();
    chunk.from.reset();
  }
  if (!group.begun) events_.push_back(std::move(group.done));
  groups_.pop_front();
  ++arrived_;
}

void Lane::note(const Group& group) noexcept {
  if (!group.begun || !base_ || !group.done.wait()) return;
  const auto begin = group.begun->since(*base_);
  const auto end = group.done.since(*base_);
  if (!begin || !end) return;
  for (const OnItsWay& one : group.chunks) {
    recorder_->note({.chunk = one.chunk,
                     .thread = one.thread,
                     .step = Step::transfer,
                     .begin = base_time_ + *begin,
                     .end = base_time_ + *end});
  }
}

Status Lane::send_all() noexcept {
  try {
    const Status sent = send_gathered();
    return sent ? close_group() : sent;
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

Status Lane::submit() noexcept {
  const std::lock_guard lock(batch_mutex_);
  const Status done = send_all();
  return done ? stream_.record(last_) : done;
}

Status Lane::drain() noexcept {
  std::unique_lock lock(batch_mutex_);
  // Does not call submit(), because other threads may be waiting for the event that it records.
  Status done = send_all();
  const std::uint64_t upto = closed_;
  lock.unlock();
  // Other threads continue meanwhile. Waits even after a failure, because submitted copies still read and write.
  const Status waited = stream_.wait();
  lock.lock();
  if (done) done = waited;
  while (done && arrived_ < upto) arrive(groups_.front());
  if (done && groups_.empty() && handed_.empty()) done = batch_.wait();
  if (!done) {
    static_cast<void>(stream_.wait());
    arrived_ = closed_;
    groups_.clear();
    handed_.clear();
  }
  return done;
}

}  // namespace headrace::fetch
