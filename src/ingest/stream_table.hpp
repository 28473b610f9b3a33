#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/detail/intervals.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/deliveries.hpp"
#include "ingest/output.hpp"

namespace headrace::ingest {

/// The open streams and their frames. The builder knows a stream by its place in this table, because the stream numbers
/// of sequencers only grow. A place is granted, with frames, before a stream opens there. It is free again when the
/// consumer has taken the stream's end and released all its frames.
class StreamTable {
 public:
  /// Bytes that the consumer wants to see before their frame is full.
  struct Peek {
    std::uint64_t offset = 0;    ///< The first byte wanted.
    std::uint64_t least = 0;     ///< Delivered only once all bytes below this have come.
    std::uint64_t end = 0;       ///< The end of the bytes that have come in order; 0: none that are wanted.
    std::uint64_t ring_end = 0;  ///< Once the ring is copied up to here, these bytes are in the frame.
  };
  struct Stream {
    std::uint32_t number = 0;
    std::uint32_t connection = 0;
    Flow flow;
    std::shared_ptr<FrameRing> frames;  ///< Null: the place is free.
    std::uint64_t limit = 0;            ///< The limit that its sequencer knows.
    std::uint64_t taken = 0;            ///< Frames taken from `frames`.
    std::optional<Peek> peek;
    std::shared_ptr<const FrameLease> lease;  ///< The lease of the next frame, if a part of it was delivered.
    bool cut = false;               ///< This side resets it, so StreamEvent::reset does not mean that the peer did.
    std::uint64_t base = 0;         ///< Stream offset of the first frame in `frames`; above 0 once it has rested.
    std::uint64_t first_frame = 0;  ///< The number of that frame.
    bool rests = false;             ///< Its frames end, but the stream does not.
    std::deque<Interval> missing;   ///< Bytes that are zeros because they never came, in order.
    std::optional<StreamEnd> end;
    std::uint64_t end_offset = 0;
  };

  /// Makes the frames of one stream at once, so that invalid options throw here, as FrameRing does.
  /// @param builder  gets the frames and ends of streams; null with resident control, which fills frames itself.
  /// @param memory_bytes_max  limit for all frames together, as in ReceiverOptions.
  StreamTable(Device device, const FrameOptions& options, Builder* builder, Deliveries& deliveries,
              std::uint32_t streams_max, std::size_t memory_bytes_max);

  /// Makes the frames of all other streams, if none can be made later. Throws DeviceError that says how much they need.
  void make_all_frames();

  /// Grants a place to one more stream. Null if all are taken, or if there is no memory for its frames now.
  FrameRing* grant();
  /// Streams that have or had a place since the start: streams with lower numbers may open.
  [[nodiscard]] std::uint32_t granted() const noexcept { return opened_ + static_cast<std::uint32_t>(granted_.size()); }
  /// The same, plus all places that could be granted now.
  [[nodiscard]] std::uint32_t grantable();
  /// Opens a stream. False if no place was granted and none can be.
  [[nodiscard]] bool open(std::uint32_t number, std::uint32_t connection, const Flow& flow);
  /// Gives frames to a stream that rests: the next one begins at `offset`. The stream is not announced again.
  [[nodiscard]] bool resume(std::uint32_t number, const Flow& flow, std::uint64_t offset, std::uint64_t first_frame);
  /// Ends the frames of the stream at `place` at `offset`, so that another stream may use them. The last one is short.
  void rest(std::uint32_t place, std::uint64_t offset);
  /// Ends a stream that rests.
  void end_resting(std::uint32_t number, const Flow& flow, StreamEnd why, std::uint64_t offset);
  /// Notes bytes that the builder gets as zeros because they never came.
  void note_missing(std::uint32_t place, Interval missing);
  /// True if open() waits for the consumer to release frames or to take ends of streams.
  [[nodiscard]] bool waits_for_consumer() const;
  /// The place of a stream; empty if it is not open.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t number) noexcept;
  /// Ends the stream at `place`: no more bytes will come. `why`: finished, reset or timed_out.
  void end(std::uint32_t place, StreamEvent why, std::uint64_t offset);
  /// The same for a stream of datagrams, whose frames need not be full: it has no frame from `frame` on.
  void end(std::uint32_t place, StreamEnd why, std::uint64_t frame, std::uint64_t stream_bytes);
  /// True if the consumer may let open() succeed later: a stream has ended and is not drained, or the consumer has
  /// frames of an ended stream.
  [[nodiscard]] bool may_open_later() const noexcept;
  /// Delivers READY frames, requested parts, and the ends of drained streams. `copied` is Intake::copied().
  void collect(std::uint64_t copied);
  /// Checks whether frames released on a device stream have become free, and frees memory unused for long.
  void poll(Time now);

  [[nodiscard]] std::span<Stream> places() noexcept { return places_; }
  [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }
  /// True if a consumer may give back space or a place.
  [[nodiscard]] bool busy() const noexcept { return open_count_ != 0 || !ended_.empty(); }
  /// How often there was no memory for frames.
  [[nodiscard]] std::uint64_t memory_failures() const noexcept { return memory_failures_; }
  /// Sums over all streams so far.
  [[nodiscard]] FrameCounters counters() const;
  [[nodiscard]] const FrameOptions& frame_options() const noexcept { return options_; }
  [[nodiscard]] std::uint32_t frame_count() const noexcept { return options_.frame_count; }
  [[nodiscard]] std::uint64_t space_bytes() const noexcept {
    return std::uint64_t{options_.frame_bytes} * options_.frame_count;
  }

 private:
  [[nodiscard]] Stream* take_place(std::uint32_t number, std::uint32_t connection, const Flow& flow);
  /// Frames that no stream uses.
  struct Unused {
    std::shared_ptr<FrameRing> frames;
    Time since;
  };
  /// A stream that has ended.
  struct Ended {
    std::shared_ptr<FrameRing> frames;  ///< The consumer may still have some of them.
    std::uint64_t end;  ///< Number of ends that the consumer must have taken, its own included; 0 if it has none.
  };

  void take_back();
  void make_frames();
  void note_no_memory() noexcept;
  void deliver_frames(Stream& stream);
  [[nodiscard]] std::vector<Interval> missing_in(Stream& stream, Frame& frame);
  void deliver_part(Stream& stream, std::uint64_t copied);
  void retire(std::uint32_t place);

  Device device_;
  FrameOptions options_;
  Builder* builder_;
  Deliveries& deliveries_;
  std::vector<Stream> places_;
  std::deque<std::shared_ptr<FrameRing>> granted_;  ///< For the streams that open next, in order.
  std::deque<Unused> unused_;                       ///< The last one used is reused first.
  std::deque<Ended> ended_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_number_;
  std::optional<std::uint32_t> last_found_;
  std::uint32_t rings_limit_;  ///< Most rings that there may be.
  std::uint32_t rings_max_;    ///< Most rings that memory allows, as far as is known.
  std::uint32_t ring_count_ = 0;
  std::uint32_t open_count_ = 0;
  std::uint32_t opened_ = 0;
  std::uint64_t ends_ = 0;  ///< Ends of streams that were delivered.
  std::uint64_t memory_failures_ = 0;
  Time memory_again_{};    ///< When to try again to allocate memory.
  bool all_made_ = false;  ///< All frames were made; none are made or freed any more.
  FrameCounters counted_;  ///< The counts of ended streams.
  FrameCounters zeros_;    ///< Missing bytes that frames count as placed (note_missing()).
};

}  // namespace headrace::ingest
