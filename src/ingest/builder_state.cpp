#include "ingest/builder_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "headrace/base/error.hpp"
#include "ingest/convert_parts.hpp"
#include "ingest/kernels.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kLinkStreams = 2;
constexpr std::size_t kMirrorFlushMin = 256 * kKiB;
/// Parts that a piece becomes at most, besides those of full length: bytes of cut items at both ends, and the rest.
constexpr std::size_t kOddPartsMax = 2 * 8 + 2;
constexpr std::uint32_t kListPartsMin = 64;
constexpr std::uint32_t kStreamsMax = 1U << 20;

RingAccess resolved(Device device, const Buffer& ring, RingAccess ring_access) {
  if (ring_access != RingAccess::automatic) return ring_access;
  return device.kind() == DeviceKind::cuda && host_accessible(ring.kind()) ? RingAccess::slots : RingAccess::direct;
}

BuilderOptions checked(Device device, const Buffer& ring, BuilderOptions options) {
  options.ring_access = resolved(device, ring, options.ring_access);
  if (options.way == CopyWay::automatic) options.way = CopyWay::gather;
  if (options.list_count < 2 || options.list_parts < kListPartsMin) {
    throw UsageError(fmt::format("a builder needs 2 lists of {} parts at least, not {} of {}", kListPartsMin,
                                 options.list_count, options.list_parts));
  }
  if (options.prompt_count >= options.list_count) {
    throw UsageError(fmt::format("a builder of {} lists submits at once below {} under way at most, not {}",
                                 options.list_count, options.list_count - 1, options.prompt_count));
  }
  const std::size_t least = options.ring_access == RingAccess::direct ? 1 : kMirrorFlushMin;
  if (options.flush_bytes < least) {
    throw UsageError(fmt::format("a builder flushes after {} bytes at least by ring access '{}', not {}", least,
                                 to_string(options.ring_access), options.flush_bytes));
  }
  if (ring.bytes() == 0 || ring.bytes() % kLineBytes != 0) {
    throw UsageError(
        fmt::format("a ring of {} bytes is no whole number of lines of {} bytes", ring.bytes(), kLineBytes));
  }
  if (ring.kind() == MemoryKind::pageable && device.kind() == DeviceKind::cuda) {
    throw UsageError("a ring in pageable memory is out of the device's reach: let it be pinned");
  }
  return options;
}

}  // namespace

Builder::State::State(Device device, const Buffer& ring, BuilderOptions given)
    : options(checked(device, ring, given)),
      device_(device),
      ring_(ring.data()),
      ring_bytes_(ring.bytes()),
      stream_(device) {
  if (options.ring_access != RingAccess::direct) {
    mirror_.emplace(device, ring, options.ring_access == RingAccess::payloads, options.list_parts);
    ring_ = mirror_->data();
    for (std::size_t i = 0; i < kLinkStreams; ++i) links_.emplace_back(device);
  }
  for (std::uint32_t i = 0; i < options.list_count; ++i) {
    bursts_.emplace_back(device).lists.emplace_back(device, options.way, options.list_parts);
  }
  conversions_.push_back(Conversion::none);
}

Builder::State::~State() {
  for (const Stream& link : links_) static_cast<void>(link.wait());
  static_cast<void>(stream_.wait());
}

void Builder::State::attach(std::uint32_t stream, FrameRing& frames) {
  if (!(frames.device() == device_)) {
    throw UsageError(fmt::format("frames on {} cannot be built on {}", frames.device().name(), device_.name()));
  }
  if (stream >= kStreamsMax || frames_of(stream) != nullptr) {
    throw UsageError(fmt::format("stream {} is attached already, or above {}", stream, kStreamsMax - 1));
  }
  const Conversion conversion = frames.options().conversion;
  target_ = {};
  if (std::find(conversions_.begin(), conversions_.end(), conversion) == conversions_.end()) {
    for (Burst& burst : bursts_) burst.lists.emplace_back(device_, options.way, options.list_parts, conversion);
    conversions_.push_back(conversion);
  }
  if (to_float(conversion) && item_bytes(conversion) > 1 && !seams_) seams_.emplace(device_);
  if (stream >= streams_.size()) streams_.resize(stream + 1, nullptr);
  streams_[stream] = &frames;
  std::size_t frame_count = 0;
  for (const FrameRing* one : streams_) frame_count += one == nullptr ? 0 : one->options().frame_count;
  full_.reserve(frame_count);
}

void Builder::State::detach(std::uint32_t stream) {
  if (frames_of(stream) == nullptr) throw UsageError(fmt::format("stream {} is not attached", stream));
  wait().or_throw("detaching a stream");
  streams_[stream] = nullptr;
}

Status Builder::State::place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept {
  while (!pieces.empty()) {
    const Piece& piece = pieces.front();
    std::size_t count = place_in_target(pieces);
    if (count == 0) {
      if (const Status placed = place_one(piece); !placed) return placed;
      count = 1;
    }
    counters.pieces += count;
    counters.bytes += count * piece.length;
    pieces = pieces.subspan(count);
    if (gathered_bytes_ >= options.flush_bytes) {
      if (const Status submitted = submit(ring_end_); !submitted) return submitted;
    }
  }
  ring_end_ = ring_end;
  const bool waited_for = !full_.empty();  // a frame lacks nothing but its copies
  return waited_for || current_ - oldest_ < options.prompt_count ? submit(ring_end_) : Status{};
}

Status Builder::State::place_one(const Piece& piece) noexcept {
  if (piece.length == 0) return {};
  FrameRing* const frames = frames_of(piece.stream);
  if (frames == nullptr || piece.ring_offset > ring_bytes_ || piece.length > ring_bytes_ - piece.ring_offset ||
      piece.stream_offset > ~std::uint64_t{0} - piece.length) {
    return Errc::invalid_argument;
  }
  const std::size_t frame_bytes = frames->options().frame_bytes;
  const std::uint64_t end = piece.stream_offset + piece.length;
  // All of it before any of it: a piece is placed whole or not at all.
  for (std::uint64_t number = piece.stream_offset / frame_bytes; number * frame_bytes < end; ++number) {
    const FrameRing::Place* const place = frames->fillable(number);
    const std::uint64_t start = number * frame_bytes;
    const std::size_t here = std::min(end, start + frame_bytes) - std::max(piece.stream_offset, start);
    if (place == nullptr || here > place->length - place->placed ||
        std::min(end, start + frame_bytes) - start > place->length) {
      return Errc::invalid_argument;
    }
  }
  for (Piece left = piece; left.length > 0;) {
    const std::uint64_t start = left.stream_offset / frame_bytes * frame_bytes;
    Piece now = left;
    now.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(left.length, start + frame_bytes - left.stream_offset));
    if (const Status gathered = gather(*frames, frames->place_of(start / frame_bytes), now); !gathered) return gathered;
    left.ring_offset += now.length;
    left.stream_offset += now.length;
    left.length -= now.length;
  }
  return {};
}

/// What nearly all pieces come to: they lie within the frame of the piece before them, which they do not fill, and its
/// list has room. Places the first of them, with those that go on like it, and returns how many; 0: the first has to be
/// looked at more closely.
std::size_t Builder::State::place_in_target(std::span<const Piece> pieces) noexcept {
  const Target& target = target_;
  const Piece& piece = pieces.front();
  const std::uint64_t offset = piece.stream_offset - target.start;
  if (target.frames == nullptr || piece.stream != target.stream || piece.length == 0 ||
      target.place->placed + piece.length >= target.place->length || offset >= target.place->length ||
      piece.length > target.place->length - offset || piece.ring_offset > ring_bytes_ ||
      piece.length > ring_bytes_ - piece.ring_offset || target.list->room() < target.list->parts_max(piece.length) ||
      target.frames->options().conversion != Conversion::none) {
    return 0;
  }
  const std::size_t unfilled = target.place->length - target.place->placed - 1;
  const std::size_t unsubmitted =
      options.flush_bytes > gathered_bytes_ ? options.flush_bytes - gathered_bytes_ - 1 : 0;  // rounded up below
  const std::size_t most =
      std::min({std::size_t{unfilled / piece.length}, std::size_t{(target.place->length - offset) / piece.length},
                std::size_t{unsubmitted / piece.length + 1},
                std::size_t{target.list->room() / target.list->parts_max(piece.length)}});
  const EvenPieces run = even_pieces(pieces.first(std::min(pieces.size(), most)), ring_bytes_);
  push(run, offset);
  return run.count;
}

/// Pieces that are not converted, to the target's list.
void Builder::State::push(const EvenPieces& run, std::size_t offset) noexcept {
  const std::size_t bytes = std::size_t{run.count} * run.first.length;
  target_.list->add({.to = target_.data + offset,
                     .from = ring_ + run.first.ring_offset,
                     .pitch = run.pitch,
                     .bytes = run.first.length,
                     .count = run.count});
  gathered_bytes_ += bytes;
  target_.place->placed += bytes;
  if (mirror_) mirror_->add(run);
}

/// A piece within one frame.
Status Builder::State::gather(FrameRing& frames, FrameRing::Place& place, const Piece& piece) noexcept {
  const FrameOptions& of = frames.options();
  const std::uint64_t number = piece.stream_offset / of.frame_bytes;
  const std::size_t offset = piece.stream_offset % of.frame_bytes;
  const auto list = list_for(of.conversion, kOddPartsMax + piece.length / (kPartBytes / 2));
  if (!list) return list.error();
  if (const Status noted = note_seam(frames, place, offset); !noted) return noted;
  target_ = {&frames, &place, *list, frames.data_of(number), number * of.frame_bytes, piece.stream};
  place.state.store(FrameState::filling, std::memory_order_release);
  if (of.conversion == Conversion::none) {
    push({.first = piece}, offset);
  } else {
    for_each_converted_part(of.conversion, target_.data, offset, ring_ + piece.ring_offset, piece.length, kPartBytes,
                            [&](const Part& part) { (*list)->push(part); });
    gathered_bytes_ += piece.length;
    place.placed += piece.length;
    if (mirror_) mirror_->add({.first = piece});
  }
  return note_if_full(frames, place);
}

/// The list of the burst that gathers, with room for so many parts.
Result<PartList*> Builder::State::list_for(Conversion conversion, std::size_t parts) noexcept {
  const auto which =
      static_cast<std::size_t>(std::find(conversions_.begin(), conversions_.end(), conversion) - conversions_.begin());
  if (parts > options.list_parts) return Errc::invalid_argument;
  if (bursts_[current_ % bursts_.size()].lists[which].room() < parts) {
    if (const Status submitted = submit(ring_end_); !submitted) return submitted.error();
  }
  return &bursts_[current_ % bursts_.size()].lists[which];
}

/// A piece that begins within an item shares it with the one before it, whichever comes first.
Status Builder::State::note_seam(FrameRing& frames, FrameRing::Place& place, std::uint64_t offset) noexcept {
  const Conversion conversion = frames.options().conversion;
  if (!to_float(conversion) || offset % item_bytes(conversion) == 0) return {};
  try {
    place.seams.push_back(static_cast<std::uint32_t>(offset / item_bytes(conversion)));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

Status Builder::State::note_if_full(FrameRing& frames, FrameRing::Place& place) noexcept {
  if (place.placed < place.length) return {};
  full_.push_back({&frames, &place});  // there is room for every frame
  return {};
}

Status Builder::State::flush() noexcept { return submit(ring_end_); }

Status Builder::State::submit(std::uint64_t ring_end) noexcept {
  Burst& burst = bursts_[current_ % bursts_.size()];
  target_ = {};
  burst.ring_end = ring_end;
  const bool any = gathered_bytes_ != 0;
  if (any) {
    if (const Status copied = copy(burst); !copied) return copied;
    ++counters.submissions;
    gathered_bytes_ = 0;
  }
  for (const Full& full : full_) {
    if (const Status completed = complete(full); !completed) return completed;
  }
  full_.clear();
  return any ? next_burst() : Status{};
}

Status Builder::State::copy(Burst& burst) noexcept {
  const StreamRef before = mirror_ ? links_[current_ % links_.size()] : stream_;
  for (PartList& list : burst.lists) {
    if (const Status uploaded = list.upload(before); !uploaded) return uploaded;
    counters.parts += list.count();
  }
  if (mirror_) {
    Status brought = mirror_->bring(before);
    if (brought) brought = before.record(burst.arrived);
    if (brought) brought = stream_.wait_for(burst.arrived);
    if (!brought) return brought;
    counters.link_copies = mirror_->copy_count();
    counters.link_bytes = mirror_->copy_bytes();
  }
  for (const PartList& list : burst.lists) {
    if (const Status copied = list.copy(stream_); !copied) return copied;
  }
  return stream_.record(burst.done);
}

Status Builder::State::complete(const Full& full) noexcept {
  if (!full.place->seams.empty()) {
    if (const Status converted = convert_seams(full); !converted) return converted;
  }
  return full.frames->complete(*full.place, stream_);
}

Status Builder::State::convert_seams(const Full& full) noexcept {
  const Conversion conversion = full.frames->options().conversion;
  std::byte* const frame = full.frames->data_of(full.place->number.load(std::memory_order_relaxed));
  std::span<const std::uint32_t> left = full.place->seams;
  while (!left.empty()) {
    const auto now = left.first(std::min<std::size_t>(left.size(), Seams::kCapacity));
    left = left.subspan(now.size());
    if (const Status free = seams_->read.wait(); !free) return free;
    std::copy(now.begin(), now.end(), seams_->host.as<std::uint32_t>());
    const auto count = static_cast<std::uint32_t>(now.size());
    Status done = stream_.copy(seams_->on_device.data(), seams_->host.data(), now.size_bytes());
    if (done) done = stream_.record(seams_->read);
    if (done) {
      done = launch(stream_, seam_kernel(conversion), seam_shape(device_, count), frame,
                    static_cast<const std::uint32_t*>(seams_->on_device.as<std::uint32_t>()), count);
    }
    if (!done) return done;
  }
  return {};
}

/// Turns to the next burst, once the device is done with what it held.
Status Builder::State::next_burst() noexcept {
  ++current_;
  Burst& burst = bursts_[current_ % bursts_.size()];
  if (current_ - oldest_ == bursts_.size()) {
    if (const Status waited = burst.done.wait(); !waited) return waited;
    copied_ = burst.ring_end;
    ++oldest_;
  }
  for (PartList& list : burst.lists) list.clear();
  return {};
}

Status Builder::State::finish(std::uint32_t stream, std::uint64_t end) noexcept {
  FrameRing* const frames = frames_of(stream);
  if (frames == nullptr) return Errc::invalid_argument;
  const std::size_t frame_bytes = frames->options().frame_bytes;
  const std::uint64_t number = end / frame_bytes;
  if (end % frame_bytes != 0) {
    FrameRing::Place* const place = frames->fillable(number);
    if (place == nullptr || place->placed > end % frame_bytes || place->length != frame_bytes) {
      return Errc::invalid_argument;
    }
    target_ = {};
    place->length = end % frame_bytes;
    if (const Status noted = note_if_full(*frames, *place); !noted) return noted;
  }
  frames->end_at(end);
  return flush();
}

Status Builder::State::break_off(std::uint32_t stream, std::uint64_t end) noexcept {
  FrameRing* const frames = frames_of(stream);
  if (frames == nullptr) return Errc::invalid_argument;
  const std::size_t frame_bytes = frames->options().frame_bytes;
  const std::size_t last_bytes = end % frame_bytes;
  if (last_bytes != 0) {
    FrameRing::Place* const place = frames->fillable(end / frame_bytes);
    if (place == nullptr || place->placed < last_bytes || place->placed >= place->length) return Errc::invalid_argument;
    place->length = place->placed = last_bytes;
    full_.push_back({frames, place});
  }
  frames->end_at(end);
  return flush();
}

Status Builder::State::close(std::uint32_t stream, std::uint64_t frame,
                             std::span<const std::uint64_t> presence) noexcept {
  FrameRing* const frames = frames_of(stream);
  FrameRing::Place* const place = frames == nullptr ? nullptr : frames->fillable(frame);
  if (place == nullptr || place->placed == place->length) return Errc::invalid_argument;
  try {
    place->presence.assign(presence.begin(), presence.end());
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  full_.push_back({frames, place});
  return flush();
}

Result<std::uint64_t> Builder::State::copied() noexcept {
  for (; oldest_ < current_; ++oldest_) {
    const Burst& burst = bursts_[oldest_ % bursts_.size()];
    const auto ready = burst.done.ready();
    if (!ready) return ready.error();
    if (!*ready) return copied_;
    copied_ = burst.ring_end;
  }
  if (gathered_bytes_ == 0) copied_ = ring_end_;  // what came since held nothing to copy
  return copied_;
}

Status Builder::State::wait() noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  if (const Status waited = stream_.wait(); !waited) return waited;
  const auto done = copied();
  return done ? Status{} : Status{done.error()};
}

}  // namespace headrace::ingest
