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
  /// Bytes of the stream that make a frame; a multiple of the conversion's items.
  std::size_t frame_bytes = std::size_t{64} << 20;
  std::uint32_t frame_count = 4;  ///< In the ring: being filled, waiting for the consumer, and with it. 2 at least.
  MemoryKind kind = MemoryKind::device;
  Conversion conversion = Conversion::none;
};

/// Where a frame is on its way round the ring.
enum class FrameState : std::uint8_t {
  free,      ///< Nobody's: bytes may come.
  filling,   ///< Some bytes have been given to the builder.
  complete,  ///< All have, or no more will come; the copies may still run.
  in_use     ///< With the consumer. READY for it, or for the stream that waits for it.
};

/// A frame that the consumer has. `data` stays as it is until the frame is released.
struct Frame {
  std::uint64_t number = 0;         ///< Frames of a stream count from 0.
  std::uint64_t stream_offset = 0;  ///< The offset of its first byte in the stream.
  std::byte* data = nullptr;        ///< On the device.
  std::size_t bytes = 0;            ///< At `data`, converted; fewer than others have for the last frame of a stream.
  std::size_t missing_bytes = 0;    ///< Bytes of packets of the stream that never came. They are zero at `data`.
  /// Which packets of a frame with gaps are there, a bit each; empty where none is missing. Valid until the frame is
  /// released, as `lengths` is.
  std::span<const std::uint64_t> presence;
  /// Bytes of the stream that each packet brought, 0 where it is missing; empty where all packets that came fill their
  /// places. What lies behind a short packet is zero at `data`.
  std::span<const std::uint16_t> lengths;
};

/// How a frame of packets ends to which no more bytes will come. Each packet has packet_bytes of the frame.
struct FrameEnd {
  std::uint64_t bytes = 0;         ///< Bytes of the stream that it is cut to: all, or fewer where that pauses or ends.
  std::uint32_t packet_bytes = 0;  ///< 1 or more, at most 65,535.
  std::span<const std::uint64_t> presence{};  ///< A bit for each packet that came.
  std::span<const std::uint16_t> lengths{};   ///< Bytes of each packet that came; empty: packet_bytes.
};

/// What a frame ring has seen.
struct FrameCounters {
  std::uint64_t frames = 0;     ///< Completed.
  std::uint64_t with_gaps = 0;  ///< Those of the frames that lack packets.
  std::uint64_t bytes = 0;      ///< Given to the builder.
  std::uint64_t missing_bytes = 0;
  friend bool operator==(const FrameCounters&, const FrameCounters&) = default;
};

/// The frames of one stream: fixed-size cuts of it, in a ring of buffers on a device. Three parties, a thread each at
/// most: the sequencer asks reserved_end(), the Builder fills, the consumer takes and releases. Frames are handed over
/// in order; they may be released in any.
class FrameRing {
 public:
  /// Throws UsageError for options out of range, DeviceError when there is no room.
  FrameRing(Device device, FrameOptions options);
  FrameRing(const FrameRing&) = delete;
  FrameRing& operator=(const FrameRing&) = delete;
  ~FrameRing() = default;

  [[nodiscard]] const FrameOptions& options() const noexcept { return options_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] FrameCounters counters() const;
  /// The state of the frame with that number; `free` for those that have not begun or have been released.
  [[nodiscard]] FrameState state(std::uint64_t number) const;

  /// Sequencer: there is space for every byte of the stream below this offset, and for none above it. Grows as frames
  /// are released: bytes accepted below it are kept.
  [[nodiscard]] std::uint64_t reserved_end() const noexcept { return reserved_end_.load(std::memory_order_acquire); }

  /// Consumer: the next frame if it is READY: every byte that it will have is in its memory.
  [[nodiscard]] Result<std::optional<Frame>> try_take() noexcept;
  /// Consumer: the next frame once it is complete, though copies may still run: work enqueued on `consumer` from now on
  /// finds it READY. No host thread waits.
  [[nodiscard]] Result<std::optional<Frame>> try_take(StreamRef consumer) noexcept;
  /// Calls `consumer(frame)` for each frame that is READY and releases it afterwards; how many there were.
  [[nodiscard]] Result<std::size_t> drain(const std::function<void(const Frame&)>& consumer);
  /// Consumer: the frame's buffer may be filled anew. Errc::invalid_argument for a frame that it has not taken.
  [[nodiscard]] Status release(std::uint64_t number) noexcept;
  /// The same once the work enqueued on `consumer` so far is done. Space appears when somebody calls poll(),
  /// try_take() or release() after that.
  [[nodiscard]] Status release(std::uint64_t number, StreamRef consumer) noexcept;
  /// Bytes begin..end of the stream, which lie in one frame that has not been taken, as they are there. Whoever asks
  /// knows that they have been copied; none of them changes until that frame is released.
  [[nodiscard]] Frame part(std::uint64_t begin, std::uint64_t end) const noexcept;
  /// Looks whether frames released on a stream have become free.
  [[nodiscard]] Status poll() noexcept;
  /// True once the stream has ended and its last frame has been taken.
  [[nodiscard]] bool drained() const;
  /// Begins another stream: all is as if just made, and the memory is used again. False, and nothing done, while the
  /// consumer has a frame. No builder may know these frames, or have copies into them under way.
  [[nodiscard]] bool restart() noexcept;

 private:
  friend class Builder;
  friend class ResidentControl;

  /// A frame's place in the ring. What has no comment is the builder's while the frame is free or filling, and guarded
  /// by the mutex otherwise; it changes hands at complete() and at reserved_end_.
  struct Place {
    explicit Place(Device device) : filled(device), released(device) {}
    std::atomic<FrameState> state{FrameState::free};  ///< Anybody may look.
    std::atomic<std::uint64_t> number{0};             ///< The number of the frame that is here, or comes next.
    std::size_t placed = 0;                           ///< Bytes of the stream given to the builder.
    std::size_t length = 0;                           ///< Bytes of the stream that the frame is cut to.
    std::size_t missing = 0;                          ///< Those of the bytes whose packets never came.
    std::vector<std::uint64_t> presence;
    std::vector<std::uint16_t> lengths;
    std::vector<std::uint32_t> seams;     ///< Items that two pieces share, where they must be whole to be converted.
    std::shared_ptr<BuildStream> copies;  ///< The burst with the last copy into it; null: all are done.
    std::uint64_t burst = 0;
    headrace::Event filled;    ///< The last copy into it, for consumers' streams;
    bool marked = false;       ///< that has been recorded.
    headrace::Event released;  ///< The consumer's stream is done with it.
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

  /// Builder: the place of a frame that bytes may still come to; null where there is none.
  [[nodiscard]] Place* fillable(std::uint64_t number) noexcept;
  /// Builder: no byte will come to the frame any more, and the last copy into it is in this burst, which is closed, or
  /// in one before it.
  [[nodiscard]] Status complete(Place& place, const std::shared_ptr<BuildStream>& copies, std::uint64_t burst) noexcept;
  /// The same where all copies into it are done.
  void complete(Place& place) noexcept;
  /// Builder: the stream ends here.
  void end_at(std::uint64_t offset) noexcept;

  Device device_;
  FrameOptions options_;
  std::size_t stride_;
  Buffer memory_;
  std::deque<Place> places_;  ///< Which do not move.
  /// The consumer takes frames on a stream: their events are recorded when they complete.
  std::atomic<bool> taken_by_stream_{false};
  std::atomic<std::uint64_t> reserved_end_;
  mutable std::mutex mutex_;     ///< Taken a few times a frame, never for a packet's bytes.
  std::uint64_t taken_ = 0;      ///< Frames that the consumer has had.
  std::uint64_t taken_end_ = 0;  ///< Where in the stream they end.
  std::uint64_t freed_ = 0;      ///< Frames before this are free.
  std::uint64_t end_ = kNoEnd;   ///< The end of the stream.
  FrameCounters counters_;
};

}  // namespace headrace::ingest
