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

/// How payloads in host memory come to a CUDA device.
enum class RingAccess : std::uint8_t {
  /// `direct` where the device shares the ring's memory. Else each run of packets as is quicker: `payloads` where they
  /// are alike, of 1 KiB at least, and begin on lines of 64 bytes (slot_lead()), `slots` otherwise.
  automatic,
  direct,   ///< The copies read the ring where it lies: in host memory, over the link.
  slots,    ///< Runs of slots go to a mirror of the ring on the device, whole; the copies read that.
  payloads  ///< The same as rows without the headers where packets are alike, which saves what headers take.
};

[[nodiscard]] std::string_view to_string(RingAccess ring_access) noexcept;
/// Throws UsageError that lists them.
[[nodiscard]] RingAccess parse_ring_access(std::string_view text);

struct BuilderOptions {
  CopyWay way = CopyWay::automatic;
  RingAccess ring_access = RingAccess::automatic;
  std::uint32_t list_count = 4;      ///< Bursts under way at once; the builder waits for the oldest beyond that.
  std::uint32_t list_parts = 65536;  ///< Copies of a burst.
  std::size_t flush_bytes =
      4 * kMiB;  ///< Submit once so much of the ring is to be copied; 256 KiB at least for mirrors.
  /// place() submits whatever it has while fewer bursts than this are under way, as copied() last found: frames are
  /// READY sooner, and bursts become as long as the device needs. Below list_count; 0: flush_bytes and flushes decide.
  std::uint32_t prompt_count = 0;
};

struct BuilderCounters {
  std::uint64_t pieces = 0;
  std::uint64_t bytes = 0;
  std::uint64_t parts = 0;        ///< Copies that pieces were cut into.
  std::uint64_t submissions = 0;  ///< Bursts given to the device.
  std::uint64_t link_copies = 0;  ///< Copies of runs of slots to the mirror.
  std::uint64_t link_bytes = 0;
};

/// Places pieces of a receive ring into the frames of one stream or several, on the device that owns the frames. Used
/// by one thread at a time, which is never held up by the device unless it is list_count bursts ahead. After its
/// construction, and once frames of the same kind have come round, it allocates nothing.
class Builder {
 public:
  /// @param ring  what pieces' ring offsets count in: of the device, or pinned or mapped host memory. A whole number of
  ///              16-byte lines, and it outlives the builder. Bytes around a piece, up to the next multiples of 16, may
  ///              be read and are not used.
  /// Throws UsageError for options that cannot be, DeviceError where there is no room.
  Builder(Device device, const Buffer& ring, BuilderOptions options = {});
  Builder(Builder&&) noexcept;
  /// Waits for what has been submitted.
  ~Builder();

  /// Pieces that name `stream` go into `frames`, of the same device, which outlive the builder or are detached.
  /// Throws UsageError for frames of another device or a stream that is attached.
  void attach(std::uint32_t stream, FrameRing& frames);
  /// Forgets a stream; waits for its copies.
  void detach(std::uint32_t stream);

  /// Gathers the copies of pieces, and submits them when a frame is full, or there are enough, or few under way. Frames
  /// complete when their last byte has been submitted. `ring_end` is the position of the ring up to which slots hold
  /// nothing but these pieces and earlier ones; copied() gives it back.
  ///
  /// Errc::invalid_argument, and nothing of the piece is copied: it lies outside of the ring, names no stream, has no
  /// space (FrameRing::reserved_end()), or its frame is complete already. Pieces before it have been gathered.
  [[nodiscard]] Status place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept;
  /// So many bytes from `offset` of a stream on lie in their frame already, without conversion. The ring is not looked
  /// at. Errors are those of place().
  [[nodiscard]] Status note(std::uint32_t stream, std::uint64_t offset, std::uint32_t length) noexcept;
  /// Submits everything gathered.
  [[nodiscard]] Status flush() noexcept;
  /// To be called again and again while no packet is waiting: submits everything gathered, too, but not while bursts
  /// enough are under way (prompt_count of them, or one), as copied() last found. More come meanwhile, and go as one.
  [[nodiscard]] Status try_flush() noexcept;
  /// The end of a stream: its last frame is cut there and completes once its bytes have come.
  [[nodiscard]] Status finish(std::uint32_t stream, std::uint64_t end) noexcept;
  /// The end of a stream that broke off: every byte before `end` has come and the next one has not. What lies behind
  /// is given up.
  [[nodiscard]] Status break_off(std::uint32_t stream, std::uint64_t end) noexcept;
  /// No more bytes will come to this frame: it completes as it is, cut to end.bytes. What no packet wrote becomes zero
  /// on the device, and presence and lengths are copied. Errc::invalid_argument where the frame has no space yet, is
  /// complete, or has bytes that `end` does not know of.
  [[nodiscard]] Status close(std::uint32_t stream, std::uint64_t frame, const FrameEnd& end) noexcept;

  /// The greatest `ring_end` up to which everything has been copied: those slots may be reused.
  [[nodiscard]] Result<std::uint64_t> copied() noexcept;
  /// Flushes and waits for all copies.
  [[nodiscard]] Status wait() noexcept;

  [[nodiscard]] const BuilderCounters& counters() const noexcept;
  /// The way that an automatic one has become.
  [[nodiscard]] CopyWay way() const noexcept;
  /// As it was given; `direct` where an automatic one has become that.
  [[nodiscard]] RingAccess ring_access() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
