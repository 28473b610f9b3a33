#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/detail/conversion.hpp"

namespace headrace::ingest {

class BuildStream;

struct FrameOptions {
  /// Bytes of the stream in a frame; a multiple of the conversion's item size.
  std::size_t frame_bytes = std::size_t{64} << 20;
  std::uint32_t frame_count = 4;  ///< Frames in the ring, in any state; at least 2.
  MemoryKind kind = MemoryKind::device;
  Conversion conversion = Conversion::none;
};

/// The state of a frame on its way around the ring.
enum class FrameState : std::uint8_t {
  free,      ///< Not in use: the builder may fill it.
  filling,   ///< Some bytes have been given to the builder.
  complete,  ///< The builder has all its bytes, or no more will come; the copies may still run.
  in_use     ///< The consumer has it. It is READY for the consumer, or for the stream that waits for it.
};

/// A frame that the consumer has taken. The bytes at `data` do not change until it is released.
struct Frame {
  std::uint64_t number = 0;         ///< Frames of a stream count from 0.
  std::uint64_t stream_offset = 0;  ///< The offset of its first byte in the stream.
  std::byte* data = nullptr;        ///< On the device.
  std::size_t bytes = 0;  ///< Bytes at `data`, converted; the last frame of a stream may have fewer than others.
  std::size_t missing_bytes = 0;  ///< Bytes of the stream whose packets never came. They are zero at `data`.
  /// A bit for each packet of a frame with gaps, set if the packet came; empty if none is missing. Valid until the
  /// frame is released, as `lengths` is.
  std::span<const std::uint64_t> presence;
  /// Bytes of the stream in each packet, 0 if it is missing; empty if all packets that came fill their places. The rest
  /// of a short packet's place is zero at `data`.
  std::span<const std::uint16_t> lengths;
};

/// How to close a frame of packets to which no more bytes will come. Each packet has a place of packet_bytes.
struct FrameEnd {
  std::uint64_t bytes = 0;         ///< Bytes that the frame is cut to: all, or fewer if the stream pauses or ends.
  std::uint32_t packet_bytes = 0;  ///< 1 or more, at most 65,535.
  std::span<const std::uint64_t> presence{};  ///< A bit for each packet that came.
  std::span<const std::uint16_t> lengths{};   ///< Bytes of each packet that came; empty: packet_bytes.
};

/// What a frame ring has seen.
struct FrameCounters {
  std::uint64_t frames = 0;     ///< Completed frames.
  std::uint64_t with_gaps = 0;  ///< Completed frames that lack packets.
  std::uint64_t bytes = 0;      ///< Bytes given to the builder.
  std::uint64_t missing_bytes = 0;
  friend bool operator==(const FrameCounters&, const FrameCounters&) = default;
};

/// The frames of one stream, all of one size, in a ring of buffers on a device. It has three users, each on at most one
/// thread: the sequencer calls reserved_end(), the Builder fills frames, and the consumer takes and releases them.
/// Frames are taken in order and may be released in any order.
class FrameRing {
 public:
  /// Throws UsageError for options out of range, DeviceError if there is no room.
  FrameRing(Device device, FrameOptions options);
  FrameRing(const FrameRing&) = delete;
  FrameRing& operator=(const FrameRing&) = delete;
  ~FrameRing() = default;

  [[nodiscard]] const FrameOptions& options() const noexcept { return options_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] FrameCounters counters() const;
  /// The state of the frame with that number; `free` for those that have not begun or have been released.
  [[nodiscard]] FrameState state(std::uint64_t number) const;

  /// Sequencer: the stream offset up to which there is space for every byte, and beyond which there is none. It grows
  /// as frames are released; bytes accepted below it are kept.
  [[nodiscard]] std::uint64_t reserved_end() const noexcept { return reserved_end_.load(std::memory_order_acquire); }

  /// Consumer: the next frame if it is READY, that is, if all its bytes are in its memory.
  [[nodiscard]] Result<std::optional<Frame>> try_take() noexcept;
  /// Consumer: the next frame if it is complete, even while copies still run: work enqueued on `consumer` from now on
  /// finds it READY. No host thread waits.
  [[nodiscard]] Result<std::optional<Frame>> try_take(StreamRef consumer) noexcept;
  /// Calls `consumer(frame)` for each READY frame and then releases the frame. Returns the number of frames.
  [[nodiscard]] Result<std::size_t> drain(const std::function<void(const Frame&)>& consumer);
  /// Consumer: lets the frame's buffer be filled again. Returns Errc::invalid_argument unless the frame is taken.
  [[nodiscard]] Status release(std::uint64_t number) noexcept;
  /// The same once the work enqueued on `consumer` so far is done. The space becomes available at the first call of
  /// poll(), try_take() or release() after that.
  [[nodiscard]] Status release(std::uint64_t number, StreamRef consumer) noexcept;
  /// Bytes begin..end of the stream, which lie in one frame that has not been taken. The caller knows that they have
  /// been copied; none of them changes until that frame is released.
  [[nodiscard]] Frame part(std::uint64_t begin, std::uint64_t end) const noexcept;
  /// Checks whether frames released on a stream have become free.
  [[nodiscard]] Status poll() noexcept;
  /// True once the stream has ended and its last frame has been taken.
  [[nodiscard]] bool drained() const;
  /// Begins another stream in the same memory, with the state of a new ring. Returns false and does nothing while the
  /// consumer has a frame. These frames must not be attached to a builder, nor may copies into them be in flight.
  [[nodiscard]] bool restart() noexcept;

 private:
  friend class Builder;
  friend class ResidentControl;

  /// A frame's place in the ring. Members other than atomics belong to the builder while the frame is free or filling,
  /// and are guarded by the mutex otherwise. They change hands at complete() and at reserved_end_.
  struct Place {
    explicit Place(Device device) : filled(device), released(device) {}
    std::atomic<FrameState> state{FrameState::free};  ///< Any thread may read it.
    std::atomic<std::uint64_t> number{0};             ///< The number of the frame that is here or comes next.
    std::size_t placed = 0;                           ///< Bytes of the stream given to the builder.
    std::size_t length = 0;                           ///< Bytes of the stream that the frame is cut to.
    std::size_t missing = 0;                          ///< Bytes of those whose packets never came.
    std::vector<std::uint64_t> presence;
    std::vector<std::uint16_t> lengths;
    std::vector<std::uint32_t> seams;     ///< Items split between two pieces, which must be whole to be converted.
    std::shared_ptr<BuildStream> copies;  ///< With `burst`: the burst with the last copy into it; null: all are done.
    std::uint64_t burst = 0;
    headrace::Event filled;    ///< Follows the last copy into it, for consumers' streams.
    bool marked = false;       ///< True if `filled` has been recorded.
    headrace::Event released;  ///< Follows the last use by the consumer's stream.
    bool releasing = false;
  };

  static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] Place& place_of(std::uint64_t number) noexcept { return places_[number % places_.size()]; }
  [[nodiscard]] const Place& place_of(std::uint64_t number) const noexcept { return places_[number % places_.size()]; }
  [[nodiscard]] std::byte* data_of(std::uint64_t number) const noexcept {
    return memory_.data() + number % places_.size() * stride_;
  }
  [[nodiscard]] Result<std::optional<Frame>> take(const StreamRef* consumer) noexcept;
  [[nodiscard]] Result<bool> is_ready(Place& place, const StreamRef* consumer) noexcept;
  [[nodiscard]] Result<Place*> taken_place(std::uint64_t number) noexcept;
  [[nodiscard]] Status poll_locked() noexcept;
  void free_front() noexcept;
  void clear(Place& place) noexcept;
  void note_complete(Place& place) noexcept;
  /// The number of frames of a stream that ends at `offset`.
  [[nodiscard]] std::uint64_t frames_before(std::uint64_t offset) const noexcept {
    return offset / options_.frame_bytes + (offset % options_.frame_bytes != 0 ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t space() const noexcept { return options_.frame_bytes * places_.size(); }

  /// Builder: the place of a frame that can still receive bytes; null if there is none.
  [[nodiscard]] Place* fillable(std::uint64_t number) noexcept;
  /// Builder: marks a frame complete to which no more bytes will come. The last copy into it is in this burst, which is
  /// closed, or in an earlier one.
  [[nodiscard]] Status complete(Place& place, const std::shared_ptr<BuildStream>& copies, std::uint64_t burst) noexcept;
  /// The same if all copies into it are done.
  void complete(Place& place) noexcept;
  /// Builder: ends the stream at this offset.
  void end_at(std::uint64_t offset) noexcept;

  Device device_;
  FrameOptions options_;
  std::size_t stride_;
  Buffer memory_;
  std::deque<Place> places_;  ///< A deque, so that places do not move.
  /// True once the consumer has taken frames on a stream: from then on `filled` is recorded when a frame completes.
  std::atomic<bool> taken_by_stream_{false};
  std::atomic<std::uint64_t> reserved_end_;
  mutable std::mutex mutex_;     ///< Locked a few times per frame, never per packet.
  std::uint64_t taken_ = 0;      ///< Frames that the consumer has taken.
  std::uint64_t taken_end_ = 0;  ///< Stream offset at which they end.
  std::uint64_t freed_ = 0;      ///< Frames before this are free.
  std::uint64_t end_ = kNoEnd;   ///< The end of the stream.
  FrameCounters counters_;
};

}  // namespace headrace::ingest
