#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"
#include "headrace/device/device.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "headrace/ingest/detail/packet.hpp"
#include "headrace/ingest/source.hpp"
#include "ingest/output.hpp"
#include "ingest/resident/view.hpp"
#include "ingest/tcp/reply.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

namespace resident {
class Memory;
}

/// Sizes of rings are powers of two.
struct ResidentOptions {
  /// initial_limit: bytes that the frames of every stream have space for, at least 1. initial_streams must be 0: places
  /// come with attach().
  TcpConfig tcp;
  std::uint32_t connections = 64;                  ///< With streams, at the same time: 1 to 65,536.
  std::uint32_t frames_max = 16;                   ///< Frames of each stream's FrameRing.
  std::uint32_t packets = 16'384;                  ///< Under way at once; 256 at least.
  std::uint32_t parts = 32'768;                    ///< Copies under way at once; 8,192 at least.
  std::uint32_t replies = 4'096;                   ///< Replies that may wait to be sent; 256 at least.
  std::uint32_t events = 1'024;                    ///< Events that may wait to be taken; 256 at least.
  std::uint32_t commands = 1'024;                  ///< Commands that may wait to be obeyed; 4 at least.
  std::uint32_t build_blocks = 0;                  ///< Blocks of 256 threads that copy; 0: as many as keep a link busy.
  Duration wait_limit = std::chrono::seconds(30);  ///< For every wait; the kernel then leaves, and poll() says why.
  /// Streams that are reset or time out end behind the last byte that came in order. Else they end with the last frame
  /// that has any bytes, and what is missing is counted.
  bool cut_broken = false;
};

struct ResidentCounters {
  TcpCounters tcp;                       ///< At most 50 ms old; exact after stop().
  std::uint64_t window_least_bytes = 0;  ///< The smallest that a connection with frames is offered; as old.
  std::uint64_t packets = 0;             ///< Packets that the kernel was told of.
  std::uint64_t replies_sent = 0;        ///< By step().
  std::uint64_t replies_lost = 0;        ///< Replies that the source did not take.
};

/// Receives TCP streams by a kernel that stays on the device: it reads the headers of packets, decides and writes
/// replies (TcpSequencer), and copies payloads into frames. The host only tells it where packets are, sends the
/// replies, and hands frames on. While it lives, the device has a resident kernel: see docs/persistent.md for what that
/// asks of others; frames are to be made before it.
///
/// One thread at a time; nothing waits, but for stop(). What a consumer does with a FrameRing stays as it is. Its end
/// stops the kernel; one that does not leave is abandoned with its memory (ResidentKernel).
class ResidentControl {
 public:
  /// @param ring  what packets' ring offsets count in: of the device, or pinned or mapped host memory. A whole number
  /// of
  ///              16-byte lines, and it outlives this. Bytes around a payload, up to the next multiples of 16, may be
  ///              read and are not used.
  /// Throws UsageError for options that cannot be, DeviceError where there is no room or not all blocks have started.
  ResidentControl(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options);

  /// The time that timers go by, in nanoseconds: never less than before. No time passes between calls.
  void set_time(std::uint64_t now) noexcept;
  /// Hands packets over; how many were taken, the first ones: others when copied() has grown. Errc::invalid_argument,
  /// and none is, where one lies outside of the ring or is longer than an IP packet.
  [[nodiscard]] Result<std::size_t> post(std::span<const Packet> packets) noexcept;
  /// Completes frames whose bytes are there, and tells the kernel of space that consumers have given back. Often.
  /// Errc::hung or Errc::device_fault when the kernel is not there any more or does not get on; see failure().
  [[nodiscard]] Status poll() noexcept;
  /// Packets that post() takes now.
  [[nodiscard]] std::size_t room() const noexcept;
  /// True when every packet has been copied and every command obeyed. The replies and events that come of them can be
  /// taken, and poll() completes their frames; more come by time alone.
  [[nodiscard]] bool settled() const noexcept;
  /// Packets, of all that were posted, whose slots hold nothing that is still needed.
  [[nodiscard]] std::uint64_t copied() const noexcept;
  /// Takes the next reply that is to be sent. While nobody does, the kernel waits once their ring is full.
  [[nodiscard]] std::optional<Reply> next_reply() noexcept;
  /// Takes the next event; the same holds. When a stream's end is told, its frames have been completed: `finished`
  /// with its last one cut at the end; else as ResidentOptions::cut_broken says.
  [[nodiscard]] Result<std::optional<Event>> next_event() noexcept;

  /// The bytes of the next stream that has no frames go into `frames`: it opens only then. Returns its number. Frames
  /// are of the same device, without conversion, of 4,096 bytes at least each and of TcpConfig::initial_limit together,
  /// and outlive this or the stream. Where commands have no room, poll() tells the kernel. Throws UsageError for frames
  /// that cannot be, and for more than there may be connections.
  std::uint32_t attach(FrameRing& frames);
  /// As TcpSequencer. Errc::full where commands have no room.
  [[nodiscard]] Status close(std::uint32_t connection, std::uint32_t stream) noexcept;
  [[nodiscard]] Status abort(std::uint32_t connection, std::uint32_t stream) noexcept;

  /// All that has no choice in it, once: takes a burst from the source, waiting for it until `timeout` where nothing is
  /// under way; posts, polls, sends replies, and releases slots of the ring, of which nothing had been published
  /// before. Sets the time by the steady clock. How many packets came. Errors are those of the source and of poll().
  [[nodiscard]] Result<std::size_t> step(Source& source, Ring& ring, Duration timeout) noexcept;

  /// Tells the kernel to leave, whatever is under way, and waits for that; Errc::hung where it did not within the
  /// limit. Frames that were whole by then are completed.
  [[nodiscard]] Status stop() noexcept;
  [[nodiscard]] const ResidentCounters& counters() const noexcept { return counters_; }
  /// After an error: what was waited for, for people.
  [[nodiscard]] std::string failure() const;

 private:
  /// A stream, which may not be open yet, and its frames.
  struct Slot {
    FrameRing* frames = nullptr;  ///< Null: free.
    std::uint32_t connection = 0;
    std::uint32_t stream = 0;
    std::uint64_t next = 0;   ///< The first frame that is not complete.
    std::uint64_t limit = 0;  ///< The limit that the kernel was told.
    bool opened = false;
  };

  [[nodiscard]] const resident::View& view() const noexcept;
  [[nodiscard]] Status command(const resident::Command& command) noexcept;
  /// Words that the kernel reads, and those that it writes; pairs with its loads and stores at system scope.
  static void tell(std::uint64_t& word, std::uint64_t value) noexcept { ResidentKernel::tell(word, value); }
  [[nodiscard]] static std::uint64_t heard(const std::uint64_t& word) noexcept { return ResidentKernel::heard(word); }
  [[nodiscard]] Status watch() noexcept;
  [[nodiscard]] Status look(Slot& slot) noexcept;
  [[nodiscard]] Status complete(Slot& slot, std::size_t bytes, std::size_t length) noexcept;
  [[nodiscard]] Status end(Slot& slot, const Event& event) noexcept;
  void introduce() noexcept;
  [[nodiscard]] Slot* slot_of(std::uint32_t stream) noexcept;
  [[nodiscard]] Status raise_limit(Slot& slot) noexcept;
  void report() noexcept;
  [[nodiscard]] resident::FrameWord& word_of(const Slot& slot, std::uint64_t number) const noexcept;

  ResidentCounters counters_;
  const Device device_;
  const ResidentOptions options_;
  const std::size_t ring_bytes_;
  Stream copies_;  ///< Copies of what the kernel has left behind.
  std::shared_ptr<const resident::Memory> memory_;
  std::vector<Slot> slots_;
  std::uint32_t streams_ = 0;       ///< Streams that have frames, or had.
  std::uint32_t streams_told_ = 0;  ///< Those of the streams that the kernel knows of.
  std::uint64_t packets_end_ = 0;
  std::uint64_t commands_end_ = 0;
  std::uint64_t replies_taken_ = 0;
  std::uint64_t events_taken_ = 0;
  std::uint64_t report_at_ = 0;  ///< The command that was the last to ask for counters, and 1.
  Time reported_ = SteadyClock::now();
  std::vector<Packet> burst_;  ///< The burst of step().
  bool stopped_ = false;
  ResidentKernel kernel_;
};

}  // namespace headrace::ingest
