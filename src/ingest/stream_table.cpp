#include "ingest/stream_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

void add(FrameCounters& to, const FrameCounters& more) noexcept {
  to.frames += more.frames;
  to.with_gaps += more.with_gaps;
  to.bytes += more.bytes;
  to.missing_bytes += more.missing_bytes;
}

/// How many ended streams one call checks.
constexpr std::size_t kLooksMax = 64;
constexpr std::size_t kLooksMin = 4;
/// Frames that no stream has used for this long are freed.
constexpr Duration kUnusedMax = std::chrono::seconds(10);
/// How long after a failed allocation to try again.
constexpr Duration kMemoryAgain = std::chrono::milliseconds(100);

/// How many streams' frames fit in memory. At least one: if even that does not fit, FrameRing throws.
[[nodiscard]] std::uint32_t rings_of(Device device, const FrameOptions& options, std::uint32_t streams_max,
                                     std::size_t memory_bytes_max) {
  const std::size_t most = memory_bytes_max != 0 ? memory_bytes_max : device.memory().total_bytes;
  const std::size_t frame = std::max<std::size_t>(converted_bytes(options.conversion, options.frame_bytes), 1);
  const std::size_t rings = most / frame / std::max(options.frame_count, 1U);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(rings, 1, streams_max));
}

[[nodiscard]] StreamEnd end_of(StreamEvent why, bool cut) noexcept {
  if (why == StreamEvent::finished) return StreamEnd::finished;
  if (why == StreamEvent::timed_out) return StreamEnd::timed_out;
  return cut ? StreamEnd::cut : StreamEnd::reset;
}

}  // namespace

StreamTable::StreamTable(Device device, const FrameOptions& options, Builder* builder, Deliveries& deliveries,
                         std::uint32_t streams_max, std::size_t memory_bytes_max)
    : device_(device),
      options_(options),
      builder_(builder),
      deliveries_(deliveries),
      places_(streams_max),
      rings_limit_(rings_of(device, options, streams_max, memory_bytes_max)),
      rings_max_(rings_limit_) {
  make_frames();
}

void StreamTable::make_frames() {
  unused_.push_back({std::make_shared<FrameRing>(device_, options_), SteadyClock::now()});
  ++ring_count_;
}

void StreamTable::make_all_frames() {
  try {
    while (ring_count_ < places_.size()) make_frames();
    all_made_ = true;
  } catch (const Exception& error) {
    if (error.code() != Errc::out_of_memory) throw;
    throw DeviceError(
        Errc::out_of_memory,
        fmt::format("{} connections with {} frames of {} each need {}, but {} has room for only {} of them; use fewer "
                    "connections, or fewer or smaller frames",
                    places_.size(), options_.frame_count, format_bytes(options_.frame_bytes),
                    format_bytes(places_.size() * space_bytes()), device_.name(), ring_count_));
  }
}

/// Takes back frames of ended streams that the consumer has finished with. Checks more of them if no others are unused.
void StreamTable::take_back() {
  const std::uint64_t taken = deliveries_.ends_taken();
  const std::size_t most = unused_.empty() ? kLooksMax : kLooksMin;
  for (std::size_t looks = std::min(ended_.size(), most); looks > 0; --looks) {
    Ended one = std::move(ended_.front());
    ended_.pop_front();
    if (one.end <= taken && one.frames->restart()) {
      unused_.push_back({std::move(one.frames), SteadyClock::now()});
    } else {
      ended_.push_back(std::move(one));
    }
  }
}

std::uint32_t StreamTable::grantable() {
  take_back();
  const std::uint32_t to_be_made = rings_max_ > ring_count_ ? rings_max_ - ring_count_ : 0;
  return granted() + static_cast<std::uint32_t>(unused_.size()) + to_be_made;
}

FrameRing* StreamTable::grant() {
  if (unused_.empty()) take_back();
  if (rings_max_ < rings_limit_ && SteadyClock::now() >= memory_again_) rings_max_ = rings_limit_;
  if (unused_.empty() && ring_count_ < rings_max_) {
    try {
      make_frames();
    } catch (const Exception& error) {
      if (error.code() != Errc::out_of_memory) throw;
      note_no_memory();
    } catch (const std::bad_alloc&) {
      note_no_memory();
    }
  }
  if (unused_.empty()) return nullptr;
  granted_.push_back(std::move(unused_.back().frames));
  unused_.pop_back();
  return granted_.back().get();
}

void StreamTable::note_no_memory() noexcept {
  ++memory_failures_;
  rings_max_ = ring_count_;
  memory_again_ = SteadyClock::now() + kMemoryAgain;
}

StreamTable::Stream* StreamTable::take_place(std::uint32_t number, std::uint32_t connection, const Flow& flow) {
  if (granted_.empty() && grant() == nullptr) return nullptr;
  // A place is free: every stream that is open or may open has a ring, and there are no more rings than places.
  const auto place = std::find_if(places_.begin(), places_.end(), [](const Stream& one) { return !one.frames; });
  const auto index = static_cast<std::uint32_t>(place - places_.begin());
  // Steps that may fail come first: the ring stays in granted_, because resident control may already know of it.
  if (builder_ != nullptr) builder_->attach(index, *granted_.front());
  by_number_.insert_or_assign(number, index);
  *place = {};
  place->number = number;
  place->connection = connection;
  place->flow = flow;
  place->frames = std::move(granted_.front());
  place->limit = space_bytes();
  granted_.pop_front();
  ++opened_;
  ++open_count_;
  return &*place;
}

bool StreamTable::open(std::uint32_t number, std::uint32_t connection, const Flow& flow) {
  if (take_place(number, connection, flow) == nullptr) return false;
  deliveries_.push({.kind = Delivery::Kind::opened, .stream = number, .flow = flow, .frame = {}});
  return true;
}

bool StreamTable::resume(std::uint32_t number, const Flow& flow, std::uint64_t offset, std::uint64_t first_frame) {
  Stream* const stream = take_place(number, 0, flow);
  if (stream == nullptr) return false;
  stream->base = offset;
  stream->first_frame = first_frame;
  return true;
}

void StreamTable::rest(std::uint32_t place, std::uint64_t offset) {
  places_[place].rests = true;
  end(place, StreamEvent::reset, offset);
}

void StreamTable::end_resting(std::uint32_t number, const Flow& flow, StreamEnd why, std::uint64_t offset) {
  deliveries_.push(
      {.kind = Delivery::Kind::ended, .stream = number, .flow = flow, .frame = {}, .end = why, .stream_bytes = offset});
  ++ends_;
}

void StreamTable::note_missing(std::uint32_t place, Interval missing) {
  std::deque<Interval>& all = places_[place].missing;
  if (!all.empty() && all.back().end == missing.begin) {
    all.back().end = missing.end;
  } else {
    all.push_back(missing);
  }
}

bool StreamTable::waits_for_consumer() const { return !ended_.empty(); }

std::optional<std::uint32_t> StreamTable::find(std::uint32_t number) noexcept {
  if (last_found_ && places_[*last_found_].frames && places_[*last_found_].number == number) return last_found_;
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return {};
  last_found_ = found->second;
  return last_found_;
}

void StreamTable::end(std::uint32_t place, StreamEvent why, std::uint64_t offset) {
  Stream& stream = places_[place];
  if (stream.end) return;
  if (builder_ != nullptr) {
    const bool whole = why == StreamEvent::finished;
    const std::uint64_t end = offset - stream.base;
    const Status ended = whole ? builder_->finish(place, end) : builder_->break_off(place, end);
    ended.or_throw("ending a stream of frames");
  }
  stream.end = end_of(why, stream.cut);
  stream.end_offset = offset;
}

void StreamTable::end(std::uint32_t place, StreamEnd why, std::uint64_t frame, std::uint64_t stream_bytes) {
  Stream& stream = places_[place];
  if (stream.end) return;
  builder_->finish(place, frame * options_.frame_bytes).or_throw("ending a stream of frames");
  stream.end = why;
  stream.end_offset = stream_bytes;
}

bool StreamTable::may_open_later() const noexcept {
  const bool ending =
      std::any_of(places_.begin(), places_.end(), [](const Stream& one) { return one.end.has_value(); });
  return ending || !ended_.empty();
}

void StreamTable::deliver_frames(Stream& stream) {
  while (stream.frames->state(stream.taken) == FrameState::complete) {
    auto frame = stream.frames->try_take().or_throw("taking a frame");
    if (!frame) return;
    ++stream.taken;
    auto lease =
        stream.lease ? std::move(stream.lease) : std::make_shared<const FrameLease>(stream.frames, frame->number);
    stream.lease.reset();
    frame->number += stream.first_frame;
    frame->stream_offset += stream.base;
    auto missing = missing_in(stream, *frame);
    deliveries_.push({.kind = Delivery::Kind::frame,
                      .stream = stream.number,
                      .flow = stream.flow,
                      .frame = std::make_shared<HeldFrame>(std::move(lease), *frame, std::move(missing))});
  }
}

/// The parts of a frame that never came. Adds them to the frame's missing_bytes.
std::vector<Interval> StreamTable::missing_in(Stream& stream, Frame& frame) {
  std::vector<Interval> found;
  const std::size_t growth = to_float(options_.conversion) ? sizeof(float) / item_bytes(options_.conversion) : 1;
  const std::uint64_t end = frame.stream_offset + frame.bytes / growth;
  while (!stream.missing.empty() && stream.missing.front().begin < end) {
    Interval& first = stream.missing.front();
    found.push_back({first.begin, std::min(first.end, end)});
    frame.missing_bytes += static_cast<std::size_t>(found.back().end - found.back().begin);
    first.begin = found.back().end;
    if (first.begin < first.end) break;
    stream.missing.pop_front();
  }
  if (!found.empty()) {
    ++zeros_.with_gaps;
    zeros_.missing_bytes += frame.missing_bytes;
  }
  return found;
}

void StreamTable::deliver_part(Stream& stream, std::uint64_t copied) {
  if (!stream.peek || stream.peek->end == 0 || stream.peek->ring_end > copied) return;
  const Peek peek = *stream.peek;
  const std::uint64_t start = stream.taken * options_.frame_bytes;
  if (peek.end >= start + options_.frame_bytes) return;  // the whole frame is delivered instead
  stream.peek.reset();
  const std::uint64_t begin = std::max(peek.offset, start);
  if (begin >= peek.end) return;  // delivered frames already contain it
  const Frame part = stream.frames->part(begin, peek.end);
  if (!stream.lease) stream.lease = std::make_shared<const FrameLease>(stream.frames, part.number);
  deliveries_.push({.kind = Delivery::Kind::part,
                    .stream = stream.number,
                    .flow = stream.flow,
                    .frame = std::make_shared<HeldFrame>(stream.lease, part)});
}

void StreamTable::collect(std::uint64_t copied) {
  if (open_count_ == 0) return;
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    Stream& stream = places_[place];
    if (!stream.frames) continue;
    deliver_frames(stream);
    if (!stream.end) deliver_part(stream, copied);  // else its last frame is delivered
    if (stream.end && stream.frames->drained()) retire(place);
  }
}

void StreamTable::retire(std::uint32_t place) {
  if (builder_ != nullptr) builder_->detach(place);
  Stream& stream = places_[place];
  if (!stream.rests) end_resting(stream.number, stream.flow, *stream.end, stream.end_offset);
  add(counted_, stream.frames->counters());
  by_number_.erase(stream.number);
  ended_.push_back({std::move(stream.frames), stream.rests ? 0 : ends_});
  --open_count_;
}

void StreamTable::poll(Time now) {
  for (const Stream& stream : places_) {
    if (stream.frames) stream.frames->poll().or_throw("polling frames");
  }
  if (!all_made_ && ring_count_ > 1 && !unused_.empty() && now - unused_.front().since > kUnusedMax) {
    unused_.pop_front();
    --ring_count_;
  }
}

FrameCounters StreamTable::counters() const {
  FrameCounters all = counted_;
  all.with_gaps += zeros_.with_gaps;
  all.missing_bytes += zeros_.missing_bytes;
  for (const Stream& stream : places_) {
    if (stream.frames) add(all, stream.frames->counters());
  }
  all.bytes -= zeros_.missing_bytes;
  return all;
}

}  // namespace headrace::ingest
