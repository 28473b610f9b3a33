#include "ingest/builder/builder_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "headrace/base/error.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kLinkStreams = 2;
constexpr std::size_t kMirrorFlushMin = 256 * kKiB;
constexpr std::uint32_t kListPartsMin = 64;
constexpr std::uint32_t kStreamsMax = 1U << 20;

RingAccess resolved(Device device, const Buffer& ring, RingAccess ring_access) {
  const bool apart = !device.properties().host_memory && host_accessible(ring.kind());
  return ring_access == RingAccess::automatic && !apart ? RingAccess::direct : ring_access;
}

BuilderOptions checked(Device device, const Buffer& ring, BuilderOptions options) {
  options.ring_access = resolved(device, ring, options.ring_access);
  if (options.way == CopyWay::automatic) options.way = CopyWay::gather;
  if (options.list_count < 2 || options.list_parts < kListPartsMin) {
    throw UsageError(fmt::format("a builder needs at least 2 lists of at least {} parts, not {} of {}", kListPartsMin,
                                 options.list_count, options.list_parts));
  }
  if (options.prompt_count >= options.list_count) {
    throw UsageError(fmt::format("prompt_count of a builder with {} lists must be at most {}, not {}",
                                 options.list_count, options.list_count - 1, options.prompt_count));
  }
  const std::size_t least = options.ring_access == RingAccess::direct ? 1 : kMirrorFlushMin;
  if (options.flush_bytes < least) {
    throw UsageError(fmt::format("flush_bytes must be at least {} with ring access '{}', not {}", least,
                                 to_string(options.ring_access), options.flush_bytes));
  }
  if (ring.bytes() == 0 || ring.bytes() % kLineBytes != 0) {
    throw UsageError(fmt::format("the ring has {} bytes, which is not a positive multiple of the line size, {} bytes",
                                 ring.bytes(), kLineBytes));
  }
  if (ring.kind() == MemoryKind::pageable && !device.properties().host_memory) {
    throw UsageError("the device cannot read a ring in pageable memory; use pinned or mapped memory");
  }
  return options;
}

}  // namespace

Builder::State::State(Device device, const Buffer& ring, BuilderOptions given)
    : options(checked(device, ring, given)),
      device_(device),
      ring_(ring.data()),
      ring_bytes_(ring.bytes()),
      copies_(std::make_shared<BuildStream>(device, options.list_count)),
      zeros_(device, MemoryKind::device, kZeroBytes) {
  stream().fill(zeros_.data(), 0, kZeroBytes).or_throw("clearing the builder's block of zeros");
  stream().wait().or_throw(
      "clearing the builder's block of zeros");  // because later steps may throw and free the zeros
  if (options.ring_access != RingAccess::direct) {
    mirror_.emplace(device, ring, options.ring_access, options.list_parts);
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
  static_cast<void>(stream().wait());
}

void Builder::State::attach(std::uint32_t stream, FrameRing& frames) {
  if (!(frames.device() == device_)) {
    throw UsageError(fmt::format("frames on {} cannot be built on {}", frames.device().name(), device_.name()));
  }
  if (stream >= kStreamsMax) {
    throw UsageError(fmt::format("the number of a stream is at most {}, not {}", kStreamsMax - 1, stream));
  }
  if (frames_of(stream) != nullptr) throw UsageError(fmt::format("stream {} is already attached", stream));
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

Result<std::uint64_t> Builder::State::copied() noexcept {
  for (; oldest_ < current_; ++oldest_) {
    const auto done = copies_->done(oldest_ + 1);
    if (!done) return done.error();
    if (!*done) return copied_;
    copied_ = bursts_[oldest_ % bursts_.size()].ring_end;
  }
  if (gathered_bytes_ == 0) copied_ = ring_end_;  // nothing to copy has come since
  return copied_;
}

Status Builder::State::wait() noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  if (const Status waited = stream().wait(); !waited) return waited;
  const auto done = copied();
  return done ? Status{} : Status{done.error()};
}

}  // namespace headrace::ingest
