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
  /// Most streams at a time. Each has frames of its own, from when it opens until the consumer has taken its end and
  /// released all its frames. Further connections wait: see TcpConfig::backlog.
  std::uint32_t connections = 64;
};

/// Streams are senders of numbered datagrams, told apart by their addresses and ports (Flow). A sender that restarts
/// with other numbers begins another stream, and its former one ends (StreamEnd::restarted). A frame holds
/// frame_packets payloads; FrameOptions::frame_bytes is ignored, and there are at least window_frames frames.
struct DatagramReception {
  DatagramConfig config{};  ///< How datagrams are numbered and put into frames.
  /// For sources that can wait, such as captures: takes no more from them than there is space for, so that every
  /// datagram gets its place, and closes no frame because of its age. The same packets then make the same frames.
  bool wait_for_space = false;
  std::uint32_t senders = 64;                ///< Most senders at a time, each with frames of its own.
  Duration idle = std::chrono::seconds(10);  ///< A sender that has been idle this long makes way for a new one.
  std::vector<SenderFilter> from{};          ///< The only senders to receive from; empty: all.
};

/// Streams are the directions of TCP connections between other machines: see FollowSource. Needs Control::host.
struct FollowReception {
  /// Most streams with frames of their own at a time. While more are open, the stream that has been idle longest passes
  /// its frames to the next: its last frame is short, and it continues in others later.
  std::uint32_t streams = 64;
};

/// Where packets are interpreted and their payloads copied.
enum class Control : std::uint8_t {
  host,     ///< The thread that steps interprets packets; the device copies payloads.
  resident  ///< A kernel that stays on the device does both: see ResidentControl. TCP only.
};

/// "host" or "resident".
[[nodiscard]] std::string_view to_string(Control control) noexcept;
/// The control of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Control parse_control(std::string_view text);

/// How a Receiver makes frames. Resident control allocates the frames of all connections before it starts, of at least
/// 4,096 bytes each, and converts nothing.
struct ReceiverOptions {
  FrameOptions frames{};  ///< The frames of each stream.
  /// How the host's control copies. With resident control `way` and `ring_access` must be automatic, and the rest is
  /// ignored.
  BuilderOptions builder{};
  std::uint32_t burst_packets = 256;  ///< Most packets taken from the source at once.
  /// Most bytes of the frames of all streams together, at least those of one stream; 0: no limit but the device's
  /// memory. Connections without a stream wait until frames are released. Resident control ignores it.
  std::size_t memory_bytes_max = 0;
  Control control = Control::host;  ///< Where packets are interpreted.
  /// With resident control, the limit of every wait of the kernel and for the kernel. Beyond it the receiver ends with
  /// an error.
  Duration wait_limit = std::chrono::seconds(30);
};

/// How a stream ended.
enum class StreamEnd : std::uint8_t {
  finished,   ///< The sender closed it, or the source has ended: every byte was delivered.
  reset,      ///< The peer reset it: bytes that came in order were delivered.
  timed_out,  ///< The peer was silent for too long, as for reset; or a sender of datagrams made way for another.
  cut,        ///< This side ended it: by reset(), stop(), or because its source failed.
  restarted   ///< The sender of datagrams restarted with other numbers and continues as another stream.
};

/// "finished", "reset", "timed out", "cut" or "restarted".
[[nodiscard]] std::string_view to_string(StreamEnd end) noexcept;

/// What a consumer gets: for each stream its beginning, its frames in order, and its end, with parts of frames between
/// them if it asked for any: see Receiver::peek().
struct Delivery {
  /// What is delivered.
  enum class Kind : std::uint8_t {
    opened,  ///< A stream has begun.
    frame,   ///< The next frame of a stream.
    part,    ///< Bytes of a frame that is not full, see Receiver::peek().
    ended,   ///< A stream has ended; nothing more of it will come.
  };
  Kind kind = Kind::opened;             ///< What is delivered.
  std::uint32_t stream = 0;             ///< Streams count from 0 in the order in which they were opened.
  Flow flow;                            ///< The sender; Flow::version is 0 if it is not known.
  std::shared_ptr<HeldFrame> frame;     ///< The frame, or the part of one with the stream offset of its own first byte.
  StreamEnd end = StreamEnd::finished;  ///< How an ended stream ended.
  /// Length of an ended stream, up to the last byte that came. If its last datagram is short and its frame was
  /// delivered before the end was known, that frame has zeros after it.
  std::uint64_t stream_bytes = 0;
};

/// What a receiver and its parts have seen.
struct ReceiverCounters {
  SourceCounters source;                      ///< The source's own.
  TcpCounters tcp;                            ///< All 0 unless streams are TCP connections of this side.
  DatagramCounters datagrams;                 ///< All 0 unless streams are senders of datagrams.
  FollowCounters follow;                      ///< All 0 unless connections between other machines are followed.
  FragmentCounters fragments;                 ///< All 0 with resident control, and for sockets and raw packets.
  BuilderCounters builder;                    ///< All 0 with resident control, which has no builder.
  FrameCounters frames;                       ///< Sums over all streams.
  std::uint64_t refused[kParseResults] = {};  ///< Packets and datagrams that were refused, by ParseResult.
  std::uint32_t open_streams = 0;             ///< Streams that are open now.
  /// Connections that were reset before they became streams: TcpCounters::silent_timed_out.
  std::uint64_t streams_refused = 0;
  std::uint64_t memory_failures = 0;     ///< Times that connections waited because frames found no memory.
  std::uint64_t replies_lost = 0;        ///< Replies that the source had no room for.
  std::uint64_t deliveries_waiting = 0;  ///< Deliveries that the consumer has not taken.
  std::uint64_t window_least_bytes = 0;  ///< The smallest window announced to an open connection; 0 without one.
};

/// Joins a source, a sequencer and a builder: packets come in, frames come out.
///
/// One thread steps: the receiver's own after start(), or the caller of step(). Any other thread takes deliveries with
/// next(), and releases frames by destroying them. If the consumer stops, the windows of TCP senders close; datagrams
/// without space wait in the ring, and are dropped and counted once they fill half of it.
///
/// With Control::resident the device has a resident kernel from the constructor until the receiver has ended: see
/// docs/persistent.md for what that asks of others.
class Receiver {
 public:
  /// Most bytes of answers that wait to be sent, for all streams together.
  static constexpr std::size_t kAnswerBytesMax = 1 * kMiB;

  /// Receives TCP connections.
  /// @param source  fills `ring`; both must outlive the receiver and not be used by anything else.
  /// @param device  owns the frames.
  ///
  /// Throws UsageError for options out of range, DeviceError if there is no room or a resident kernel does not start.
  Receiver(Source& source, Ring& ring, Device device, const TcpReception& tcp, const ReceiverOptions& options = {});
  /// Receives numbered datagrams. Parameters and errors are those of the constructor for TCP.
  Receiver(Source& source, Ring& ring, Device device, const DatagramReception& datagrams,
           const ReceiverOptions& options = {});
  /// Receives the streams that `source` follows. A source that can wait, such as a capture, loses nothing: it is read
  /// as frames are released. Parameters and errors are those of the constructor for TCP.
  Receiver(FollowSource& source, Ring& ring, Device device, const FollowReception& follow,
           const ReceiverOptions& options = {});
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  /// As stop(). Frames that the consumer holds stay valid.
  ~Receiver();

  /// Takes a burst from the source, waiting up to `timeout` for it, and processes it. False once the source has ended
  /// and everything has been delivered. Throws an error of the source or the builder, after which the receiver has
  /// ended.
  bool step(Duration timeout);

  /// Steps on a thread of the receiver's own until the source ends, an error occurs, or stop(). May be called once.
  void start();
  /// Ends the thread of start(), and resets open connections so that their peers notice. Waiting deliveries may still
  /// be taken.
  void stop() noexcept;

  /// Resets the TCP connection of a stream that the consumer no longer needs, at the next step; the stream ends with
  /// StreamEnd::cut. Does nothing for a stream that has ended. Any thread.
  void reset(std::uint32_t stream);

  // For protocols that answer on the connection, over TCP with the host's control. These functions throw UsageError
  // with resident control and for streams of datagrams. Any thread may call them; they take effect at the next step,
  // unless the connection has ended by then.

  /// Sends `bytes` on a stream's connection after those sent before. Meant for short answers: about 1 KiB goes in a
  /// round trip. Returns Errc::full, and takes nothing, beyond kAnswerBytesMax. A stream that its peer has finished can
  /// still be answered if TcpConfig::close_when_finished is off.
  [[nodiscard]] Status send(std::uint32_t stream, std::span<const std::byte> bytes);
  /// Closes this side of the connection: FIN follows what waits to be sent. The peer's bytes are still received.
  void close(std::uint32_t stream);
  /// Asks for bytes of a stream from `offset` on before their frame is full. As soon as some have come in order, and
  /// all before `end`, a Delivery::Kind::part brings what their frame has, once. The frame itself still follows, with
  /// the same bytes; if it is full first, no part comes. A later call replaces one that is not yet fulfilled. Throws
  /// UsageError for frames that are converted.
  void peek(std::uint32_t stream, std::uint64_t offset, std::uint64_t end = 0);
  /// True if peek() is supported: it does not throw.
  [[nodiscard]] bool has_parts() const noexcept;

  /// The next delivery, waiting up to `timeout` for it. Empty if none came or none will: see ended(). After all
  /// deliveries it throws the error that ended the thread of start(). Any thread.
  [[nodiscard]] std::optional<Delivery> next(Duration timeout);
  /// True once nothing more will be delivered.
  [[nodiscard]] bool ended() const;

  /// The counts so far. Any thread. After start() they may be 50 ms old until the receiver has ended, and those of TCP
  /// with resident control another 50 ms.
  [[nodiscard]] ReceiverCounters counters() const;

 private:
  class State;
  /// Throws in a forked child.
  [[nodiscard]] State& own_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
