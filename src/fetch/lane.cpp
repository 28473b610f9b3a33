#include "fetch/lane.hpp"

#include <algorithm>

#include "headrace/base/bytes.hpp"

namespace headrace::fetch {

namespace {

/// A lane stages nothing but pageable chunks, with its own thread.
CopyBatchOptions batch_options(std::size_t flush_bytes) {
  return {.flush_bytes = flush_bytes, .staging_bytes = 8 * kKiB, .staging = {.threads = 1, .slot_bytes = kMiB}};
}

}  // namespace

Lane::Lane(Device device, std::size_t flush_bytes)
    : flush_bytes_(flush_bytes), stream_(device), batch_(stream_, batch_options(flush_bytes)), last_(device) {}

void Lane::take_notes(Notes notes) {
  notes_ = notes;
  base_.reset();
  if (notes_.recorder == nullptr) return;
  base_.emplace(stream_.device(), EventTiming::on);
  stream_.record(*base_).or_throw("timing the transfers of a fetch");
  base_->wait().or_throw("timing the transfers of a fetch");
  base_time_ = SteadyClock::now();
}

Status Lane::open_group() {
  started_ = SteadyClock::now();
  if (notes_.recorder == nullptr) return {};
  auto event = Event::create(stream_.device(), EventTiming::on);
  if (!event) return event.error();
  begun_ = *std::move(event);
  batch_.mark_next(*begun_);
  return {};
}

Status Lane::add(Chunk chunk, HostCache::Pin from, DeviceCache::Pin& to) {
  const ColumnView view = from->view;
  const ChunkShape shape = shape_of(view);
  std::byte* const block = to->block.data();
  to->view = view_in(view, shape, block);
  const auto source = from->pinned ? CopySource::stable : CopySource::pageable;
  const bool one_piece = from->pinned;
  if (gathered_.empty()) {
    if (const Status opened = open_group(); !opened) return opened;
  }
  gathered_.push_back({chunk, std::move(from), &to});
  if (one_piece) {
    const std::size_t bytes = shape.validity_bytes > 0 ? shape.bytes() : shape.values_bytes;
    if (const Status added = batch_.add(block, values_from(view), bytes, source); !added) return added;
  } else {
    if (const Status added = batch_.add(block, values_from(view), shape.values_bytes, source); !added) return added;
    const Status added = batch_.add(block + shape.validity_at, validity_from(view), shape.validity_bytes, source);
    if (!added) return added;
  }
  if (batch_.statistics().submissions != submissions_) {
    // A flush in between the two copies of a chunk has left its second behind.
    if (const Status flushed = batch_.flush(); !flushed) return flushed;
    if (const Status closed = close_group(); !closed) return closed;
  }
  while (!groups_.empty()) {
    const auto ready = groups_.front().done.ready();
    if (!ready) return ready.error();
    if (!*ready) break;
    arrive(groups_.front());
    groups_.pop_front();
  }
  return {};
}

Result<Event> Lane::take_event() noexcept {
  if (notes_.recorder != nullptr) return Event::create(stream_.device(), EventTiming::on);
  if (events_.empty()) return Event::create(stream_.device());
  Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

Status Lane::close_group() {
  submissions_ = batch_.statistics().submissions;
  if (gathered_.empty()) return {};
  auto event = take_event();
  if (!event) return event.error();
  if (const Status recorded = stream_.record(*event); !recorded) return recorded;
  groups_.push_back({.done = *std::move(event),
                     .begun = std::exchange(begun_, std::nullopt),
                     .started = started_,
                     .chunks = std::move(gathered_)});
  gathered_.clear();
  return {};
}

void Lane::arrive(Group& group) {
  const Time now = SteadyClock::now();
  busy_ += now - std::max(seen_, group.started);
  seen_ = now;
  note(group);
  for (OnItsWay& chunk : group.chunks) {
    chunk.to->publish();
    chunk.from.reset();
  }
  if (!group.begun) events_.push_back(std::move(group.done));
}

void Lane::note(const Group& group) noexcept {
  if (!group.begun || !base_ || !group.done.wait()) return;
  const auto begin = group.begun->since(*base_);
  const auto end = group.done.since(*base_);
  if (!begin || !end) return;
  for (const OnItsWay& one : group.chunks) {
    notes_.recorder->note({.chunk = one.chunk,
                           .thread = notes_.thread,
                           .step = Step::transfer,
                           .begin = base_time_ + *begin,
                           .end = base_time_ + *end});
  }
}

Status Lane::submit() noexcept {
  if (const Status flushed = batch_.flush(); !flushed) return flushed;
  if (const Status closed = close_group(); !closed) return closed;
  return stream_.record(last_);
}

Status Lane::drain() noexcept {
  // Not submit(): others may be waiting for the event that it records.
  Status done = batch_.flush();
  if (done) done = close_group();
  if (done) done = batch_.wait();
  if (!done) static_cast<void>(stream_.wait());  // what is on its way still reads and writes
  for (Group& group : groups_) {
    if (done) arrive(group);
  }
  groups_.clear();
  gathered_.clear();
  return done;
}

}  // namespace headrace::fetch
