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

/// Options of a ResidentControl. The sizes of rings are powers of two.
struct ResidentOptions {
  /// initial_limit: bytes of space in the frames of every stream, at least 1. initial_streams must be 0, because
  /// attach() adds streams.
  TcpConfig tcp;
  std::uint32_t connections = 64;                  ///< Most connections with streams at a time: 1 to 65,536.
  std::uint32_t frames_max = 16;                   ///< Most frames of a stream's FrameRing.
  std::uint32_t packets = 16'384;                  ///< Packets in flight; at least 256.
  std::uint32_t parts = 32'768;                    ///< Copies in flight; at least 8,192.
  std::uint32_t replies = 4'096;                   ///< Replies that may wait to be sent; at least 256.
  std::uint32_t events = 1'024;                    ///< Events that may wait to be taken; at least 256.
  std::uint32_t commands = 1'024;                  ///< Commands that may wait for the kernel; at least 4.
  std::uint32_t build_blocks = 0;                  ///< Blocks of 256 threads that copy; 0: as many as keep a link busy.
  Duration wait_limit = std::chrono::seconds(30);  ///< Limit of every wait; beyond it the kernel leaves.
  /// Streams that are reset or time out end after the last byte that came in order. If false, they end with the last
  /// frame that has any bytes, and missing bytes are counted.
  bool cut_broken = false;
};

struct ResidentCounters {
  TcpCounters tcp;                       ///< At most 50 ms old; exact after stop().
  std::uint64_t window_least_bytes = 0;  ///< The smallest window offered to a connection with frames; as old as `tcp`.
  std::uint64_t packets = 0;             ///< Packets posted to the kernel.
  std::uint64_t replies_sent = 0;        ///< Replies sent by step().
  std::uint64_t replies_lost = 0;        ///< Replies that the source did not take.
};

/// Receives TCP streams with a kernel that stays on the device. The kernel reads the headers of packets, decides and
/// writes replies (TcpSequencer), and copies payloads into frames. The host only tells it where packets are, sends the
/// replies, and delivers frames. While this object lives, the device has a resident kernel: see docs/persistent.md for
/// what that asks of others. Make frames before it.
///
/// One thread at a time uses it. No function waits except stop(). Consumers use a FrameRing as always. The destructor
/// stops the kernel; a kernel that does not leave is abandoned with its memory (ResidentKernel).
class ResidentControl {
 public:
  /// @param ring  the memory that ring offsets of packets refer to: device memory, or pinned or mapped host memory. A
  ///              whole number of 16-byte lines; it must outlive this object. Bytes around a payload, up to the next
  ///              multiples of 16, may be read and are not used.
  /// Throws UsageError for options out of range, DeviceError if there is no room or not all blocks started.
  ResidentControl(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options);

  /// Sets the time of timers in nanoseconds, which never decreases. No time passes between calls.
  void set_time(std::uint64_t now) noexcept;
  /// Posts packets. Returns how many it took, from the first on; it takes more once copied() has grown. Returns
  /// Errc::invalid_argument, and takes none, if one lies outside the ring or is longer than an IP packet.
  [[nodiscard]] Result<std::size_t> post(std::span<const Packet> packets) noexcept;
  /// Completes frames whose bytes are there, and tells the kernel of space that consumers released. Call it often.
  /// Returns Errc::hung or Errc::device_fault if the kernel has left or makes no progress; see failure().
  [[nodiscard]] Status poll() noexcept;
  /// How many packets post() can take now.
  [[nodiscard]] std::size_t room() const noexcept;
  /// True if all packets have been copied and all commands carried out. Their replies and events can be taken, and
  /// poll() completes their frames; only timers cause more.
  [[nodiscard]] bool settled() const noexcept;
  /// How many of the posted packets have slots that are no longer needed.
  [[nodiscard]] std::uint64_t copied() const noexcept;
  /// Takes the next reply to send. If the ring of replies is full, the kernel waits.
  [[nodiscard]] std::optional<Reply> next_reply() noexcept;
  /// Takes the next event; the same holds for their ring. When it returns the end of a stream, the stream's frames have
  /// been completed: for `finished` with the last one cut at the end, else as ResidentOptions::cut_broken says.
  [[nodiscard]] Result<std::optional<Event>> next_event() noexcept;

  /// Gives `frames` to the next stream without frames, which opens only then. Returns the stream's number. The frames
  /// must be on the same device, without conversion, have at least 4,096 bytes each and TcpConfig::initial_limit in
  /// total, and outlive this object or the stream. If commands have no room, poll() tells the kernel later. Throws
  /// UsageError for other frames, and if there are already frames for all connections.
  std::uint32_t attach(FrameRing& frames);
  /// As in TcpSequencer. Returns Errc::full if commands have no room.
  [[nodiscard]] Status close(std::uint32_t connection, std::uint32_t stream) noexcept;
  [[nodiscard]] Status abort(std::uint32_t connection, std::uint32_t stream) noexcept;

  /// Does one standard step: takes a burst from the source, waiting up to `timeout` if no packet is in flight; posts
  /// it, polls, sends replies, and releases slots of the ring, in which nothing was published before. Sets the time by
  /// the steady clock. Returns how many packets came. Errors are those of the source and of poll().
  [[nodiscard]] Result<std::size_t> step(Source& source, Ring& ring, Duration timeout) noexcept;

  /// Tells the kernel to leave, whatever is in flight, and waits for it. Returns Errc::hung if it did not leave within
  /// the limit. Completes frames that had all their bytes by then.
  [[nodiscard]] Status stop() noexcept;
  [[nodiscard]] const ResidentCounters& counters() const noexcept { return counters_; }
  /// After an error: a message that says what the kernel waited for.
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
  /// Write words that the kernel reads, and read those that it writes; they pair with its accesses at system scope.
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
  Stream copies_;  ///< For copies of the kernel's state after it has left.
  std::shared_ptr<const resident::Memory> memory_;
  std::vector<Slot> slots_;
  std::uint32_t streams_ = 0;       ///< Streams that have or had frames.
  std::uint32_t streams_told_ = 0;  ///< Streams that the kernel knows of.
  std::uint64_t packets_end_ = 0;
  std::uint64_t commands_end_ = 0;
  std::uint64_t replies_taken_ = 0;
  std::uint64_t events_taken_ = 0;
  std::uint64_t report_at_ = 0;  ///< Position after the last command that requested counters; 0: none is pending.
  Time reported_ = SteadyClock::now();
  std::vector<Packet> burst_;  ///< The burst of step().
  bool stopped_ = false;
  ResidentKernel kernel_;
};

}  // namespace headrace::ingest
