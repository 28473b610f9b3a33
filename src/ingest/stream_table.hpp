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

/// The streams that are open, each with its frames and its number with the builder, which is its place in the table:
/// those of sequencers only grow. A place is granted, with its frames, before the stream opens that goes there. It is
/// free again when the consumer has taken the stream's end and given back all its frames.
class StreamTable {
 public:
  /// Bytes that the consumer wants to see before their frame is full.
  struct Peek {
    std::uint64_t offset = 0;    ///< From here on.
    std::uint64_t least = 0;     ///< Not before the stream has come up to here.
    std::uint64_t end = 0;       ///< So far bytes have come in order; 0: none that are wanted.
    std::uint64_t ring_end = 0;  ///< Once the ring is copied up to here, they lie in the frame.
  };
  struct Stream {
    std::uint32_t number = 0;
    std::uint32_t connection = 0;
    Flow flow;
    std::shared_ptr<FrameRing> frames;  ///< Null: the place is free.
    std::uint64_t limit = 0;            ///< The limit that its sequencer knows of.
    std::uint64_t taken = 0;            ///< Frames.
    std::optional<Peek> peek;
    std::shared_ptr<const FrameLease> lease;  ///< The lease of the next frame, where a part of it was delivered.
    bool cut = false;                         ///< This side resets it: that it is reset is not by the peer.
    std::uint64_t base = 0;         ///< Where these frames begin: a stream that has rested has had others before.
    std::uint64_t first_frame = 0;  ///< The number of the first of these frames.
    bool rests = false;             ///< Its frames end here, the stream does not.
    std::deque<Interval> missing;   ///< Bytes of it that are zeros because they never came, in order.
    std::optional<StreamEnd> end;
    std::uint64_t end_offset = 0;
  };

  /// Makes the frames of one stream, so that options that cannot be are found. Throws as FrameRing does.
  /// @param builder  is told where streams go, and where they end; null where somebody else fills frames.
  /// @param memory_bytes_max  of all frames together, as in ReceiverOptions.
  StreamTable(Device device, const FrameOptions& options, Builder* builder, Deliveries& deliveries,
              std::uint32_t streams_max, std::size_t memory_bytes_max);

  /// Makes the frames of all other streams, where none can be made later. Throws DeviceError that says how much it is.
  void make_all_frames();

  /// Takes a place for one more stream. Null where all are taken, or there is no memory for its frames now.
  FrameRing* grant();
  /// Streams that have a place or had one, since the start: those with numbers below may open.
  [[nodiscard]] std::uint32_t granted() const noexcept { return opened_ + static_cast<std::uint32_t>(granted_.size()); }
  /// The same with all places that could be granted now.
  [[nodiscard]] std::uint32_t grantable();
  /// False where no place was granted, and none can be.
  [[nodiscard]] bool open(std::uint32_t number, std::uint32_t connection, const Flow& flow);
  /// The same for a stream that rests: its next frames begin at `offset`. Not announced again.
  [[nodiscard]] bool resume(std::uint32_t number, const Flow& flow, std::uint64_t offset, std::uint64_t first_frame);
  /// Ends the frames of the stream at `place` at `offset`, so that another may have them: its last frame is short.
  void rest(std::uint32_t place, std::uint64_t offset);
  /// Ends a stream that rests.
  void end_resting(std::uint32_t number, const Flow& flow, StreamEnd why, std::uint64_t offset);
  /// Bytes that are given to the builder as zeros never came.
  void note_missing(std::uint32_t place, Interval missing);
  /// open() waits for the consumer: to release frames, or to take ends of streams.
  [[nodiscard]] bool waits_for_consumer() const;
  /// Its place; empty where it is not open.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t number) noexcept;
  /// No more bytes will come to the stream at `place`. `why`: finished, reset or timed_out.
  void end(std::uint32_t place, StreamEvent why, std::uint64_t offset);
  /// The same for a stream of datagrams, whose frames need not be full: the builder has no frame from `frame` on.
  void end(std::uint32_t place, StreamEnd why, std::uint64_t frame, std::uint64_t stream_bytes);
  /// Whether open() may succeed later by what the consumer does: a stream has ended and is not drained, or frames of
  /// one are with the consumer.
  [[nodiscard]] bool may_open_later() const noexcept;
  /// Delivers frames that are READY, parts that are wanted, and the ends of streams of which all are. `copied` as of
  /// Intake.
  void collect(std::uint64_t copied);
  /// Looks whether frames that were released on a stream have become free, and gives memory back that no stream has
  /// used for a while.
  void poll(Time now);

  [[nodiscard]] std::span<Stream> places() noexcept { return places_; }
  [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }
  /// Whether a consumer may give back space or a place.
  [[nodiscard]] bool busy() const noexcept { return open_count_ != 0 || !ended_.empty(); }
  /// Times that there was no memory for frames.
  [[nodiscard]] std::uint64_t memory_failures() const noexcept { return memory_failures_; }
  /// The sums over all streams there were.
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
    std::shared_ptr<FrameRing> frames;  ///< The consumer may still have some.
    std::uint64_t end;  ///< Ends that the consumer must have taken before, its own among them; 0 where it has none.
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
  std::deque<Unused> unused_;                       ///< The last to be used is the first to be used again.
  std::deque<Ended> ended_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_number_;
  std::optional<std::uint32_t> last_found_;
  std::uint32_t rings_limit_;  ///< As many as there may be.
  std::uint32_t rings_max_;    ///< As many as there is memory for, as far as is known.
  std::uint32_t ring_count_ = 0;
  std::uint32_t open_count_ = 0;
  std::uint32_t opened_ = 0;
  std::uint64_t ends_ = 0;  ///< Delivered.
  std::uint64_t memory_failures_ = 0;
  Time memory_again_{};    ///< When to try again to have more memory.
  bool all_made_ = false;  ///< No memory can be taken or given back any more.
  FrameCounters counted_;  ///< The counts of ended streams.
  FrameCounters zeros_;    ///< What frames count as bytes and is missing (note_missing()).
};

}  // namespace headrace::ingest
