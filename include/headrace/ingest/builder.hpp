#pragma once

// A Builder places pieces of a receive ring into the frames of streams, on the device that owns the frames. A Receiver
// has one; this is for programs with a sequencer of their own.
//
//     headrace::Device device = headrace::Device::parse("best");
//     headrace::Buffer ring(device, headrace::MemoryKind::mapped, 1 << 20);
//     headrace::ingest::FrameRing frames(device, {.frame_bytes = 1 << 20});
//     headrace::ingest::Builder builder(device, ring);
//     builder.attach(0, frames);
//     const headrace::ingest::Piece piece{.ring_offset = 54, .stream_offset = 0, .length = 1460};
//     builder.place({&piece, 1}, 1).or_throw("placing a payload");
//     builder.wait().or_throw("placing a payload");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/ingest/detail/copy_way.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "headrace/ingest/detail/piece.hpp"

namespace headrace::ingest {

/// How payloads in host memory get to a CUDA device.
enum class RingAccess : std::uint8_t {
  /// `direct` if the device shares the ring's memory. Otherwise the faster way for each run of packets: `payloads` if
  /// they are alike, at least 1 KiB long and begin on lines of 64 bytes (slot_lead()), else `slots`.
  automatic,
  direct,   ///< The copies read the ring where it lies: in host memory, over the link.
  slots,    ///< Whole runs of slots go to a mirror of the ring on the device, from which the copies read.
  payloads  ///< As `slots`, but runs of similar packets go without their headers, as rows.
};

/// "automatic", "direct", "slots" or "payloads".
[[nodiscard]] std::string_view to_string(RingAccess ring_access) noexcept;
/// The access of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] RingAccess parse_ring_access(std::string_view text);

/// How a Builder copies.
struct BuilderOptions {
  CopyWay way = CopyWay::automatic;                ///< How the bytes of parts get to their frames.
  RingAccess ring_access = RingAccess::automatic;  ///< How payloads in host memory get to the device.
  std::uint32_t list_count = 4;      ///< Most bursts in flight; beyond that the builder waits for the oldest.
  std::uint32_t list_parts = 65536;  ///< Most copies of a burst.
  std::size_t flush_bytes =
      4 * kMiB;  ///< Submits once this much of the ring is to be copied; at least 256 KiB for mirrors.
  /// place() submits whatever it has while fewer bursts than this are in flight, as copied() last found: frames are
  /// READY sooner, and bursts become as long as the device needs. Below list_count; 0: only flush_bytes and flushes
  /// submit.
  std::uint32_t prompt_count = 0;
};

/// What a Builder has done since its construction.
struct BuilderCounters {
  std::uint64_t pieces = 0;       ///< Pieces placed or noted.
  std::uint64_t bytes = 0;        ///< Bytes of those pieces.
  std::uint64_t parts = 0;        ///< Copies that pieces were cut into.
  std::uint64_t submissions = 0;  ///< Bursts given to the device.
  std::uint64_t link_copies = 0;  ///< Copies of runs of slots to the mirror.
  std::uint64_t link_bytes = 0;   ///< Bytes of those copies.
};

/// Places pieces of a receive ring into the frames of one stream or several, on the device that owns the frames. Used
/// by one thread at a time, which waits for the device only when it is list_count bursts ahead. After construction, and
/// once frames of the same kind have been reused, it allocates nothing.
class Builder {
 public:
  /// Makes a builder without streams.
  /// @param ring  the memory that ring offsets of pieces refer to: device memory, or pinned or mapped host memory. A
  /// whole number of 16-byte lines; it must outlive the builder. Bytes around a piece, up to the next multiples of 16,
  /// may be read and are not used.
  ///
  /// Throws UsageError for options out of range, DeviceError if there is no room.
  Builder(Device device, const Buffer& ring, BuilderOptions options = {});
  Builder(Builder&&) noexcept;
  /// Waits for what has been submitted.
  ~Builder();

  /// Directs pieces that name `stream` into `frames`, which must stay until detach() or the builder's end. Throws
  /// UsageError for frames of another device or a stream that is attached already.
  void attach(std::uint32_t stream, FrameRing& frames);
  /// Forgets a stream; waits for its copies.
  void detach(std::uint32_t stream);

  /// Gathers the copies of pieces. Submits them when a frame is full, there are enough of them, or few bursts are in
  /// flight. A frame completes when its last byte has been submitted. `ring_end` is the position of the ring up to
  /// which slots hold nothing but these pieces and earlier ones; copied() returns it.
  ///
  /// Returns Errc::invalid_argument, without copying anything of the piece, if it lies outside the ring, names no
  /// attached stream, has no space (FrameRing::reserved_end()), or belongs to a complete frame. Pieces before it have
  /// been gathered.
  [[nodiscard]] Status place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept;
  /// Notes that `length` bytes of a stream from `offset` on are already in their frame, without conversion. Does not
  /// read the ring. Errors are those of place().
  [[nodiscard]] Status note(std::uint32_t stream, std::uint64_t offset, std::uint32_t length) noexcept;
  /// Submits everything gathered.
  [[nodiscard]] Status flush() noexcept;
  /// For calls in a loop while no packet is waiting: submits everything gathered unless enough bursts are in flight
  /// (prompt_count, or one), as copied() last found. Later pieces then join the same burst.
  [[nodiscard]] Status try_flush() noexcept;
  /// Ends a stream at offset `end`: its last frame is cut there and completes once its bytes have come.
  [[nodiscard]] Status finish(std::uint32_t stream, std::uint64_t end) noexcept;
  /// Ends a stream that broke off: every byte before `end` has come and the next one has not. Bytes after that are
  /// dropped.
  [[nodiscard]] Status break_off(std::uint32_t stream, std::uint64_t end) noexcept;
  /// Closes a frame to which no more bytes will come: it completes as it is, cut to end.bytes. Bytes that no packet
  /// wrote become zero on the device, and presence and lengths are copied. Returns Errc::invalid_argument if the frame
  /// has no space yet, is complete, or has bytes that `end` does not cover.
  [[nodiscard]] Status close(std::uint32_t stream, std::uint64_t frame, const FrameEnd& end) noexcept;

  /// The greatest `ring_end` up to which everything has been copied: those slots may be reused.
  [[nodiscard]] Result<std::uint64_t> copied() noexcept;
  /// Flushes and waits for all copies.
  [[nodiscard]] Status wait() noexcept;

  /// The counts so far, for the thread that uses the builder.
  [[nodiscard]] const BuilderCounters& counters() const noexcept;
  /// The way in use: BuilderOptions::way, or what `automatic` became.
  [[nodiscard]] CopyWay way() const noexcept;
  /// BuilderOptions::ring_access, or `direct` if `automatic` became that.
  [[nodiscard]] RingAccess ring_access() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
