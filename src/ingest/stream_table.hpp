#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/output.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/deliveries.hpp"

namespace headrace::ingest {

/// The streams that are open, each with its frames and its number with the builder, which is its place in the table:
/// those of sequencers only grow. Frames of streams that have ended serve later ones.
class StreamTable {
 public:
  /// Bytes that the consumer wants to see before their frame is full.
  struct Peek {
    std::uint64_t offset = 0;    ///< From here on.
    std::uint64_t end = 0;       ///< So far bytes have come in order; 0: none that are wanted.
    std::uint64_t ring_end = 0;  ///< Once the ring is copied up to here, they lie in the frame.
  };
  struct Stream {
    std::uint32_t number = 0;
    std::uint32_t connection = 0;
    Flow flow;
    std::shared_ptr<FrameRing> frames;  ///< Null: the place is free.
    std::uint64_t limit = 0;            ///< That its sequencer knows of.
    std::uint64_t taken = 0;            ///< Frames.
    std::optional<Peek> peek;
    std::shared_ptr<const FrameLease> lease;  ///< Of the next frame, where a part of it was delivered.
    bool cut = false;                         ///< This side resets it: that it is reset is not by the peer.
    std::optional<StreamEnd> end;
    std::uint64_t end_offset = 0;
  };

  /// Makes the frames of one stream, so that options that cannot be are found. Throws as FrameRing does.
  /// @param builder  is told where streams go, and where they end; null where somebody else fills frames.
  StreamTable(Device device, const FrameOptions& options, Builder* builder, Deliveries& deliveries,
              std::uint32_t streams_max);

  /// Makes the frames of all other streams, where none can be made later. Throws DeviceError that says how much it is.
  void make_all_frames();

  /// False where there is no place or no memory for its frames, or the consumer leaves too many ended ones waiting.
  [[nodiscard]] bool open(std::uint32_t number, std::uint32_t connection, const Flow& flow);
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
  /// Looks whether frames that were released on a stream have become free.
  void poll();

  [[nodiscard]] std::span<Stream> places() noexcept { return places_; }
  [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }
  /// Of all streams there were.
  [[nodiscard]] FrameCounters counters() const;
  [[nodiscard]] std::uint32_t frame_count() const noexcept { return options_.frame_count; }
  [[nodiscard]] std::uint64_t space_bytes() const noexcept {
    return std::uint64_t{options_.frame_bytes} * options_.frame_count;
  }

 private:
  [[nodiscard]] std::shared_ptr<FrameRing> frames();
  void deliver_frames(Stream& stream);
  void deliver_part(Stream& stream, std::uint64_t copied);
  void retire(std::uint32_t place);

  Device device_;
  FrameOptions options_;
  Builder* builder_;
  Deliveries& deliveries_;
  std::vector<Stream> places_;
  std::vector<std::shared_ptr<FrameRing>> kept_;  ///< Of ended streams; the consumer may still have frames of them.
  std::unordered_map<std::uint32_t, std::uint32_t> by_number_;
  std::optional<std::uint32_t> last_found_;
  std::uint32_t ring_count_ = 0;
  std::uint32_t open_count_ = 0;
  FrameCounters ended_;
};

}  // namespace headrace::ingest
