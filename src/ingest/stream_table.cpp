#include "ingest/stream_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

void add(FrameCounters& to, const FrameCounters& more) noexcept {
  to.frames += more.frames;
  to.with_gaps += more.with_gaps;
  to.bytes += more.bytes;
  to.missing_bytes += more.missing_bytes;
}

[[nodiscard]] StreamEnd end_of(StreamEvent why, bool cut) noexcept {
  if (why == StreamEvent::finished) return StreamEnd::finished;
  if (why == StreamEvent::timed_out) return StreamEnd::timed_out;
  return cut ? StreamEnd::cut : StreamEnd::reset;
}

}  // namespace

StreamTable::StreamTable(Device device, const FrameOptions& options, Builder* builder, Deliveries& deliveries,
                         std::uint32_t streams_max)
    : device_(device), options_(options), builder_(builder), deliveries_(deliveries), places_(streams_max) {
  kept_.push_back(std::make_shared<FrameRing>(device_, options_));
  ring_count_ = 1;
}

void StreamTable::make_all_frames() {
  try {
    for (; ring_count_ < places_.size(); ++ring_count_) {
      kept_.push_back(std::make_shared<FrameRing>(device_, options_));
    }
  } catch (const Exception& error) {
    if (error.code() != Errc::out_of_memory) throw;
    throw DeviceError(
        Errc::out_of_memory,
        fmt::format("{} connections with {} frames of {} each take {}, and {} has room for {} of them: let there be "
                    "fewer connections, or fewer or smaller frames",
                    places_.size(), options_.frame_count, format_bytes(options_.frame_bytes),
                    format_bytes(places_.size() * space_bytes()), device_.name(), ring_count_));
  }
}

std::shared_ptr<FrameRing> StreamTable::frames() {
  const auto free = std::find_if(kept_.begin(), kept_.end(), [](const auto& frames) { return frames->restart(); });
  if (free != kept_.end()) {
    std::shared_ptr<FrameRing> found = std::move(*free);
    kept_.erase(free);
    return found;
  }
  if (ring_count_ == places_.size()) return nullptr;
  try {
    auto made = std::make_shared<FrameRing>(device_, options_);
    ++ring_count_;
    return made;
  } catch (const Exception& error) {
    if (error.code() != Errc::out_of_memory) throw;
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool StreamTable::open(std::uint32_t number, std::uint32_t connection, const Flow& flow) {
  const auto place = std::find_if(places_.begin(), places_.end(), [](const Stream& one) { return !one.frames; });
  if (place == places_.end() || deliveries_.ends_waiting() >= places_.size()) return false;
  auto made = frames();
  if (!made) return false;
  const auto index = static_cast<std::uint32_t>(place - places_.begin());
  if (builder_ != nullptr) builder_->attach(index, *made);
  *place = {.number = number,
            .connection = connection,
            .flow = flow,
            .frames = std::move(made),
            .limit = space_bytes(),
            .peek = {},
            .lease = {},
            .end = {}};
  by_number_[number] = index;
  ++open_count_;
  deliveries_.push({.kind = Delivery::Kind::opened, .stream = number, .flow = flow, .frame = {}});
  return true;
}

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
    const Status ended = whole ? builder_->finish(place, offset) : builder_->break_off(place, offset);
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
  return ending || !kept_.empty() || deliveries_.ends_waiting() >= places_.size();
}

void StreamTable::deliver_frames(Stream& stream) {
  while (stream.frames->state(stream.taken) == FrameState::complete) {
    const auto frame = stream.frames->try_take().or_throw("taking a frame");
    if (!frame) return;
    ++stream.taken;
    deliveries_.push({.kind = Delivery::Kind::frame,
                      .stream = stream.number,
                      .flow = stream.flow,
                      .frame = stream.lease ? std::make_shared<HeldFrame>(std::move(stream.lease), *frame)
                                            : std::make_shared<HeldFrame>(stream.frames, *frame)});
    stream.lease.reset();
  }
}

void StreamTable::deliver_part(Stream& stream, std::uint64_t copied) {
  if (!stream.peek || stream.peek->end == 0 || stream.peek->ring_end > copied) return;
  const Peek peek = *stream.peek;
  const std::uint64_t start = stream.taken * options_.frame_bytes;
  if (peek.end >= start + options_.frame_bytes) return;  // the frame itself comes
  stream.peek.reset();
  const std::uint64_t begin = std::max(peek.offset, start);
  if (begin >= peek.end) return;  // frames have brought it
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
    if (!stream.end) deliver_part(stream, copied);  // else its last frame comes
    if (stream.end && stream.frames->drained()) retire(place);
  }
}

void StreamTable::retire(std::uint32_t place) {
  if (builder_ != nullptr) builder_->detach(place);
  Stream& stream = places_[place];
  deliveries_.push({.kind = Delivery::Kind::ended,
                    .stream = stream.number,
                    .flow = stream.flow,
                    .frame = {},
                    .end = *stream.end,
                    .stream_bytes = stream.end_offset});
  add(ended_, stream.frames->counters());
  by_number_.erase(stream.number);
  kept_.push_back(std::move(stream.frames));
  --open_count_;
}

void StreamTable::poll() {
  for (const Stream& stream : places_) {
    if (stream.frames) stream.frames->poll().or_throw("looking at frames");
  }
}

FrameCounters StreamTable::counters() const {
  FrameCounters all = ended_;
  for (const Stream& stream : places_) {
    if (stream.frames) add(all, stream.frames->counters());
  }
  return all;
}

}  // namespace headrace::ingest
