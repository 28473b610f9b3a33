#pragma once

// A Receiver joins a source, a sequencer and a builder: packets come in, and frames of streams come out, in the memory
// of a device.
//
//     auto receive = [](headrace::ingest::Source& source, headrace::Ring& ring) {
//       headrace::ingest::TcpReception tcp{.config = {.port = 9000}};
//       headrace::ingest::Receiver receiver(source, ring, headrace::Device::parse("best"), tcp);
//       receiver.start();
//       while (!receiver.ended()) {
//         std::optional<headrace::ingest::Delivery> delivery = receiver.next(std::chrono::seconds(1));
//         if (delivery && delivery->frame) std::printf("%zu bytes\n", delivery->frame->frame().bytes);
//       }
//     };

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/ring.hpp"
#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/detail/datagrams.hpp"
#include "headrace/ingest/detail/fragments.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/held_frame.hpp"
#include "headrace/ingest/detail/sender_filter.hpp"
#include "headrace/ingest/detail/tcp_config.hpp"
#include "headrace/ingest/detail/tcp_counters.hpp"
#include "headrace/ingest/follow.hpp"
#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// Streams are TCP connections.
struct TcpReception {
  /// `initial_limit` and `initial_streams` are set by the receiver, and `key` drawn where it is 0.
  TcpConfig config{};
  /// Streams at the same time. Each has frames of its own, from when it opens until the consumer has taken its end and
  /// given back all its frames. Further connections wait: see TcpConfig::backlog.
  std::uint32_t connections = 64;
};

/// Streams are senders of numbered datagrams: who sends from where to where (Flow). One that begins anew with other
/// numbers begins another stream, and the one before has ended (StreamEnd::restarted). A frame is frame_packets
/// payloads; FrameOptions::frame_bytes is not looked at, and there are window_frames frames at least.
struct DatagramReception {
  DatagramConfig config{};
  /// For sources that wait: takes no more from them than there is space for, so that every datagram gets its place, and
  /// closes no frame for its age. The same packets then make the same frames.
  bool wait_for_space = false;
  std::uint32_t senders = 64;                ///< At the same time. Each has frames of its own, from its first datagram.
  Duration idle = std::chrono::seconds(10);  ///< A sender that was silent for so long gives way to another one.
  std::vector<SenderFilter> from{};          ///< The only senders to receive from; empty: all.
};

/// Streams are the directions of TCP connections between others: see FollowSource. Control is the host's.
struct FollowReception {
  /// Streams that have frames of their own at the same time, at most. While more are open, one that has had no bytes
  /// for longest gives its frames to the next: its last one is short, and its stream goes on in others.
  std::uint32_t streams = 64;
};

/// What decides what packets mean, and copies their payloads.
enum class Control : std::uint8_t {
  host,     ///< The thread that steps; the device copies.
  resident  ///< A kernel that stays on the device: see ResidentControl. TCP only.
};

[[nodiscard]] std::string_view to_string(Control control) noexcept;
/// Throws UsageError that lists them.
[[nodiscard]] Control parse_control(std::string_view text);

/// Resident control takes the frames of all connections before it starts, each of 4,096 bytes at least, and converts
/// nothing.
struct ReceiverOptions {
  FrameOptions frames{};  ///< The frames of each stream.
  /// Resident control copies in its own way: `way` and `ring_access` must be automatic, the rest is not looked at.
  BuilderOptions builder{};
  std::uint32_t burst_packets = 256;  ///< Taken from the source at once, at most.
  /// Bytes of the frames of all streams together, one stream's at least; 0: all that the device has. Connections
  /// without a stream wait for what is given back. Resident control takes all its frames before, whatever this says.
  std::size_t memory_bytes_max = 0;
  Control control = Control::host;
  /// The limit of every wait of the kernel, and for it: then the receiver gives up control, and ends with an error.
  Duration wait_limit = std::chrono::seconds(30);
};

/// How a stream ended.
enum class StreamEnd : std::uint8_t {
  finished,   ///< The sender said that this was all, or the source has ended: everything is there.
  reset,      ///< By the peer: what came in order is there.
  timed_out,  ///< Nothing was heard for too long: as for reset. A sender of datagrams gave way to another one.
  cut,        ///< This side ended it: by reset(), stop(), or because its source failed.
  restarted   ///< The sender of datagrams has begun anew, with other numbers: another stream has what follows.
};

[[nodiscard]] std::string_view to_string(StreamEnd end) noexcept;

/// What a consumer gets: for each stream its beginning, its frames in order, and its end. Between them parts of frames,
/// where it asked for them: see Receiver::peek().
struct Delivery {
  enum class Kind : std::uint8_t { opened, frame, part, ended };
  Kind kind = Kind::opened;
  std::uint32_t stream = 0;          ///< Streams count from 0 in the order in which they were opened.
  Flow flow;                         ///< The sender; of version 0 where that is not known.
  std::shared_ptr<HeldFrame> frame;  ///< Or the part of one, with the stream offset of its own first byte.
  StreamEnd end = StreamEnd::finished;
  /// Bytes of an ended stream, up to the last that came. Where its last datagram is short and its frame was delivered
  /// before the end was known, that frame holds zeros behind.
  std::uint64_t stream_bytes = 0;
};

/// What a receiver and its parts have seen.
struct ReceiverCounters {
  SourceCounters source;
  TcpCounters tcp;                            ///< All 0 where streams are not TCP.
  DatagramCounters datagrams;                 ///< All 0 where streams are.
  FollowCounters follow;                      ///< All 0 unless connections between others are followed.
  FragmentCounters fragments;                 ///< All 0 with resident control, of sockets, and of raw packets.
  BuilderCounters builder;                    ///< All 0 with resident control, which has none.
  FrameCounters frames;                       ///< The sums over all streams.
  std::uint64_t refused[kParseResults] = {};  ///< Packets and datagrams that were refused, by ParseResult.
  std::uint32_t open_streams = 0;
  /// Connections that were reset before they became streams: TcpCounters::silent_timed_out.
  std::uint64_t streams_refused = 0;
  std::uint64_t memory_failures = 0;     ///< Times that there was no memory for a stream's frames: connections waited.
  std::uint64_t replies_lost = 0;        ///< Replies that the source had no room for.
  std::uint64_t deliveries_waiting = 0;  ///< Deliveries that the consumer has not taken.
  std::uint64_t window_least_bytes = 0;  ///< The smallest that an open connection is offered; 0 without one.
};

/// Joins a source, a sequencer and a builder: packets come in, frames come out.
///
/// One thread steps: one of the receiver's own after start(), or whoever calls step(). Any other takes what there is
/// with next(), and gives frames back by letting go of them. A consumer that stops closes the windows of TCP senders.
/// Datagrams without space wait in the ring, and are dropped and counted once they take half of it.
///
/// With Control::resident the device has a resident kernel from the constructor until the receiver has ended: see
/// docs/persistent.md for what that asks of others.
class Receiver {
 public:
  /// Answers that may wait to be sent, of all streams together.
  static constexpr std::size_t kAnswerBytesMax = 1 * kMiB;

  /// @param source  fills `ring`; both outlive the receiver, and nobody else uses them meanwhile.
  /// @param device  where frames are.
  /// Throws UsageError for options that cannot be, DeviceError where there is no room, or where a resident kernel does
  /// not start.
  Receiver(Source& source, Ring& ring, Device device, const TcpReception& tcp, const ReceiverOptions& options = {});
  Receiver(Source& source, Ring& ring, Device device, const DatagramReception& datagrams,
           const ReceiverOptions& options = {});
  /// A source that waits, as a capture does, loses nothing: it is read as frames are released.
  Receiver(FollowSource& source, Ring& ring, Device device, const FollowReception& follow,
           const ReceiverOptions& options = {});
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  /// As stop(). Frames that the consumer has stay valid.
  ~Receiver();

  /// Takes a burst from the source, waiting for it until `timeout`, and does all that follows from it. False once the
  /// source has ended and everything has been delivered. Throws what is wrong with source or builder, after which the
  /// receiver has ended.
  bool step(Duration timeout);

  /// Steps on a thread of the receiver's own until the source ends, an error, or stop(). Called once.
  void start();
  /// Ends the thread of start(), and resets connections that are open, so that their peers know. Deliveries that are
  /// waiting may still be taken.
  void stop() noexcept;

  /// Resets the TCP connection of a stream that the consumer has no more use for, at the next step: its peer knows, and
  /// the stream is StreamEnd::cut. Does nothing for one that has ended. For any thread.
  void reset(std::uint32_t stream);

  // For protocols in which a connection is answered: of TCP with the host's control. The three throw UsageError where
  // control is resident, and for streams of datagrams. For any thread; they are obeyed at the next step, or never where
  // the connection is no more.

  /// Says `bytes` on a stream's connection, behind what was said before: short answers, of which about 1 KiB goes in a
  /// round trip. Errc::full, and nothing is taken, beyond kAnswerBytesMax. A stream that its peer has finished can
  /// still be answered where TcpConfig::close_when_finished is off.
  [[nodiscard]] Status send(std::uint32_t stream, std::span<const std::byte> bytes);
  /// Nothing more will be said on the connection: FIN follows what waits. What the peer sends is still received.
  void close(std::uint32_t stream);
  /// Asks for bytes of a stream from `offset` on before their frame is full: as soon as some have come in order, and
  /// all before `end` have, a Delivery::Kind::part brings what has of their frame, once. Their frame comes as well,
  /// with the same bytes; where it comes first, no part does. Another call takes the place of one that is not
  /// fulfilled. Throws UsageError for frames that are converted.
  void peek(std::uint32_t stream, std::uint64_t offset, std::uint64_t end = 0);
  /// Whether streams have parts: peek() does not throw.
  [[nodiscard]] bool has_parts() const noexcept;

  /// What comes next, waiting for it until `timeout`. Empty when nothing came, or nothing will: see ended(). Throws
  /// what ended the thread of start(), after everything that came before. May be called by several threads.
  [[nodiscard]] std::optional<Delivery> next(Duration timeout);
  /// True once nothing will be delivered any more.
  [[nodiscard]] bool ended() const;

  /// For any thread. After start(), and those of TCP with resident control, they may be 50 ms old (100 ms with both)
  /// until the receiver has ended.
  [[nodiscard]] ReceiverCounters counters() const;

 private:
  class State;
  /// Throws in a forked child.
  [[nodiscard]] State& own_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
