#include "headrace/ingest/detail/frames.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "ingest/builder/build_stream.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kFrameAlignment = 256;
constexpr std::uint32_t kFramesMin = 2;
constexpr std::uint32_t kFramesMax = 1U << 16;

/// Huge pages make the first use of frames cheaper, and every copy into them. A system without them loses nothing.
void use_large_pages(const Buffer& memory) noexcept {
  constexpr std::uintptr_t kLarge = 2 * kMiB;
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = align_up(first, kLarge);
  const std::uintptr_t end = (first + memory.bytes()) / kLarge * kLarge;
  if (begin < end) (void)::madvise(memory.data() + (begin - first), end - begin, MADV_HUGEPAGE);
}

FrameOptions checked(const FrameOptions& options) {
  const std::size_t item = item_bytes(options.conversion);
  if (options.frame_bytes == 0 || options.frame_bytes % item != 0) {
    throw UsageError(
        fmt::format("a frame of {} bytes is invalid: its size must be a positive multiple of {}, the item size",
                    options.frame_bytes, item));
  }
  if (options.frame_count < kFramesMin || options.frame_count > kFramesMax) {
    throw UsageError(fmt::format("a ring has {} to {} frames, not {}", kFramesMin, kFramesMax, options.frame_count));
  }
  if (!device_accessible(options.kind) || options.kind == MemoryKind::stream_ordered) {
    throw UsageError(fmt::format("frames cannot be in {} memory; use device, pool, managed or mapped memory",
                                 to_string(options.kind)));
  }
  if (options.frame_bytes > (std::size_t{1} << 47) / options.frame_count) {
    throw UsageError(
        fmt::format("{} frames of {} bytes do not fit in the address space", options.frame_count, options.frame_bytes));
  }
  return options;
}

}  // namespace

FrameRing::FrameRing(Device device, FrameOptions options)
    : device_(device),
      options_(checked(options)),
      stride_(align_up(converted_bytes(options_.conversion, options_.frame_bytes), kFrameAlignment)),
      memory_(device, options_.kind, stride_ * options_.frame_count) {
  if (device.properties().host_memory) use_large_pages(memory_);
  for (std::uint32_t i = 0; i < options_.frame_count; ++i) {
    Place& place = places_.emplace_back(device);
    place.number.store(i, std::memory_order_relaxed);
    place.length = options_.frame_bytes;
  }
  reserved_end_.store(space(), std::memory_order_release);
}

FrameCounters FrameRing::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

FrameState FrameRing::state(std::uint64_t number) const {
  const Place& place = place_of(number);
  const FrameState state = place.state.load(std::memory_order_acquire);
  return place.number.load(std::memory_order_acquire) == number ? state : FrameState::free;
}

Result<std::optional<Frame>> FrameRing::try_take() noexcept { return take(nullptr); }
Result<std::optional<Frame>> FrameRing::try_take(StreamRef consumer) noexcept { return take(&consumer); }

Result<std::optional<Frame>> FrameRing::take(const StreamRef* consumer) noexcept {
  const std::lock_guard lock(mutex_);
  if (const Status polled = poll_locked(); !polled) return polled.error();
  if (end_ != kNoEnd && taken_ >= frames_before(end_))
    return std::optional<Frame>{};  // bytes beyond the end are dropped
  Place& place = place_of(taken_);
  if (place.number.load(std::memory_order_relaxed) != taken_ ||
      place.state.load(std::memory_order_acquire) != FrameState::complete) {
    return std::optional<Frame>{};
  }
  const auto ready = is_ready(place, consumer);
  if (!ready) return ready.error();
  if (!*ready) return std::optional<Frame>{};
  place.state.store(FrameState::in_use, std::memory_order_release);
  Frame frame;
  frame.number = taken_;
  frame.stream_offset = taken_end_;
  frame.data = data_of(taken_);
  frame.bytes = converted_bytes(options_.conversion, place.length);
  frame.missing_bytes = place.missing;
  frame.presence = place.presence;
  frame.lengths = place.lengths;
  ++taken_;
  taken_end_ += place.length;
  return std::optional(frame);
}

Frame FrameRing::part(std::uint64_t begin, std::uint64_t end) const noexcept {
  Frame part;
  part.number = begin / options_.frame_bytes;
  part.stream_offset = begin;
  part.data = data_of(part.number) + begin % options_.frame_bytes;
  part.bytes = static_cast<std::size_t>(end - begin);
  return part;
}

/// True if every byte is there for the consumer, or for its stream.
Result<bool> FrameRing::is_ready(Place& place, const StreamRef* consumer) noexcept {
  if (consumer != nullptr) taken_by_stream_.store(true, std::memory_order_relaxed);
  if (!place.copies) return true;
  const auto done = place.copies->done(place.burst);
  if (!done || *done || consumer == nullptr) return done;
  // The first frames taken on a stream also wait for work that the builder has enqueued since.
  if (!place.marked) {
    if (const Status marked = place.copies->stream().record(place.filled); !marked) return marked.error();
    place.marked = true;
  }
  if (const Status ordered = consumer->wait_for(place.filled); !ordered) return ordered.error();
  return true;
}

Result<std::size_t> FrameRing::drain(const std::function<void(const Frame&)>& consumer) {
  std::size_t count = 0;
  while (true) {
    const auto frame = try_take();
    if (!frame) return frame.error();
    if (!frame->has_value()) return count;
    consumer(**frame);
    if (const Status released = release((*frame)->number); !released) return released.error();
    ++count;
  }
}

Result<FrameRing::Place*> FrameRing::taken_place(std::uint64_t number) noexcept {
  Place& place = place_of(number);
  const bool taken = place.number.load(std::memory_order_relaxed) == number && !place.releasing &&
                     place.state.load(std::memory_order_relaxed) == FrameState::in_use;
  if (!taken) return Errc::invalid_argument;
  return &place;
}

Status FrameRing::release(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = taken_place(number);
  if (!place) return place.error();
  (*place)->state.store(FrameState::free, std::memory_order_release);
  free_front();
  return {};
}

Status FrameRing::release(std::uint64_t number, StreamRef consumer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = taken_place(number);
  if (!place) return place.error();
  if (const Status recorded = consumer.record((*place)->released); !recorded) return recorded;
  (*place)->releasing = true;
  return poll_locked();
}

Status FrameRing::poll() noexcept {
  const std::lock_guard lock(mutex_);
  return poll_locked();
}

Status FrameRing::poll_locked() noexcept {
  for (std::uint64_t number = freed_; number < taken_; ++number) {
    Place& place = place_of(number);
    if (!place.releasing) continue;
    const auto ready = place.released.ready();
    if (!ready) return ready.error();
    if (!*ready) continue;
    place.releasing = false;
    place.state.store(FrameState::free, std::memory_order_release);
  }
  free_front();
  return {};
}

/// Gives the places of released frames, oldest first, to the frames that follow.
void FrameRing::free_front() noexcept {
  const std::uint64_t before = freed_;
  while (freed_ < taken_) {
    Place& place = place_of(freed_);
    if (place.state.load(std::memory_order_relaxed) != FrameState::free) break;
    clear(place);
    place.number.store(freed_ + places_.size(), std::memory_order_release);
    ++freed_;
  }
  // Pairs with reserved_end() and fillable(): a thread that sees the space finds the place ready.
  if (freed_ != before) {
    reserved_end_.store(freed_ * options_.frame_bytes + space(), std::memory_order_release);
  }
}

/// Makes the place ready for another frame.
void FrameRing::clear(Place& place) noexcept {
  place.placed = 0;
  place.length = options_.frame_bytes;
  place.missing = 0;
  place.presence.clear();
  place.lengths.clear();
  place.seams.clear();
  place.copies.reset();
}

bool FrameRing::drained() const {
  const std::lock_guard lock(mutex_);
  return end_ != kNoEnd && taken_ >= frames_before(end_);
}

bool FrameRing::restart() noexcept {
  const std::lock_guard lock(mutex_);
  if (const Status polled = poll_locked(); !polled || freed_ != taken_) return false;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    place.state.store(FrameState::free, std::memory_order_release);
    place.number.store(i, std::memory_order_release);
    clear(place);
  }
  taken_ = freed_ = taken_end_ = 0;
  end_ = kNoEnd;
  counters_ = {};
  reserved_end_.store(space(), std::memory_order_release);
  return true;
}

FrameRing::Place* FrameRing::fillable(std::uint64_t number) noexcept {
  if (number >= reserved_end() / options_.frame_bytes) return nullptr;
  Place& place = place_of(number);
  if (place.number.load(std::memory_order_relaxed) != number) return nullptr;  // an older frame has it
  const FrameState state = place.state.load(std::memory_order_relaxed);
  return state == FrameState::free || state == FrameState::filling ? &place : nullptr;
}

Status FrameRing::complete(Place& place, const std::shared_ptr<BuildStream>& copies, std::uint64_t burst) noexcept {
  place.marked = taken_by_stream_.load(std::memory_order_relaxed);
  if (place.marked) {
    if (const Status marked = copies->stream().record(place.filled); !marked) return marked;
  }
  place.copies = copies;
  place.burst = burst;
  note_complete(place);
  return {};
}

void FrameRing::complete(Place& place) noexcept {
  place.copies.reset();
  note_complete(place);
}

void FrameRing::note_complete(Place& place) noexcept {
  const std::lock_guard lock(mutex_);
  ++counters_.frames;
  counters_.bytes += place.placed;
  counters_.missing_bytes += place.missing;
  if (place.missing != 0) ++counters_.with_gaps;
  place.state.store(FrameState::complete, std::memory_order_release);
}

void FrameRing::end_at(std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  end_ = offset;
}

}  // namespace headrace::ingest
