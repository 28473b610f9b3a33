#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"
#include "ingest/line.hpp"
#include "ingest/output.hpp"
#include "ingest/tcp/state.hpp"

/// What the host and the kernel of a ResidentControl share. Positions count entries from the start and do not wrap;
/// rings have sizes of powers of two. Every word of host memory has one writer at a time.
namespace headrace::ingest::resident {

/// Packets whose headers are looked at together.
inline constexpr std::uint32_t kWindow = 256;
/// The least that a frame may have: a window's packets are cut at frames' ends, and all of it must fit the list.
inline constexpr std::uint32_t kFrameBytesMin = 4096;
inline constexpr std::uint32_t kPiecesOfWindow = 512;
inline constexpr std::uint32_t kAnswersOfWindow = 256;  ///< Replies and, as many again, events.
inline constexpr std::uint32_t kCommandsOfWindow = 32;
/// Blocks that do not build: poll and acknowledge.
inline constexpr std::uint32_t kControlBlocks = 2;
/// Parts that a window comes to, at most: 16 MiB of payload cut at every kFrameBytesMin, at packets and at pieces.
inline constexpr std::uint32_t kPartsOfWindow = 8192;
static_assert(std::uint64_t{kWindow} * 0x10000 / kFrameBytesMin + 2 * (kWindow + kPiecesOfWindow) < kPartsOfWindow);

enum class CommandKind : std::uint32_t { attach, limit, close, abort, report };

struct Command {
  CommandKind kind = CommandKind::report;
  std::uint32_t connection = 0;
  std::uint32_t stream = 0;
  std::uint32_t slot = 0;         ///< The slot of those that streams are attached to, before they open: attach.
  std::uint32_t frame_count = 0;  ///< From here on, of its frames.
  std::uint64_t frame_bytes = 0;
  std::uint64_t stride = 0;
  std::byte* frames = nullptr;
  std::uint64_t limit = 0;
};

/// Why the kernel has left.
enum class Leave : std::uint32_t {
  no,
  told,
  no_room_for_replies,  ///< From here on: a wait that was longer than its limit.
  no_room_for_events,
  parts_not_copied
};

/// Words in host memory that the host writes, read together by the poll role: where each lies.
inline constexpr std::uint32_t kPacketsEnd = 0;
inline constexpr std::uint32_t kNow = 1;
inline constexpr std::uint32_t kCommandsEnd = 2;
inline constexpr std::uint32_t kStop = 3;
inline constexpr std::uint32_t kHostWords = 4;
/// The same in device memory, written by the poll role; a Leave, which any role may set once, where the stop word is.
inline constexpr std::uint32_t kParsedEnd = kPacketsEnd;
inline constexpr std::uint32_t kLeave = kStop;

/// The state of a place in a stream's ring of frames; in host memory.
struct FrameWord {
  std::uint64_t number_end = 0;  ///< The frame with the number before is whole.
  std::uint64_t partial = 0;     ///< When the stream has ended: bytes of the frame that is not.
};

/// A packet and what its headers say.
struct Parsed {
  Packet packet;
  Headers headers;
  ParseResult result;
};

/// Where a part goes.
struct PartPlace {
  std::uint64_t number;  ///< The number of the frame.
  std::uint32_t place;   ///< The place among all places of all slots.
};

/// Parts for a team, and the packets that are done with once these and all before are copied.
struct Batch {
  std::uint64_t packets_end;
  std::uint64_t first;
  std::uint32_t count;
};

/// Frames that a stream's bytes go to. Slots are the host's to give.
struct Attached {
  std::byte* frames = nullptr;
  std::uint64_t frame_bytes = 0;
  std::uint64_t stride = 0;
  std::uint32_t frame_count = 0;
};

/// What the acknowledge role's sequencer writes to, before the rest of the block hands it on.
struct Scratch {
  Piece pieces[kPiecesOfWindow];
  alignas(kLineBytes) Reply replies[kAnswersOfWindow];
  Event events[kAnswersOfWindow];
};

struct View {
  Layer layer = Layer::ip;
  std::uint32_t packet_mask = 0;  ///< The mask of the rings of descriptors and of parsed headers.
  std::uint32_t part_mask = 0;    ///< The mask of parts, their places, and batches.
  std::uint32_t reply_mask = 0;
  std::uint32_t event_mask = 0;
  std::uint32_t command_mask = 0;
  std::uint32_t slots = 0;
  std::uint32_t places_per_slot = 0;
  std::uint64_t wait_limit_ns = 0;
  const std::byte* ring = nullptr;
  TcpView tcp;

  // In host memory, written by the host.
  std::uint64_t* host = nullptr;  ///< kHostWords of them.
  std::uint64_t* replies_taken = nullptr;
  std::uint64_t* events_taken = nullptr;
  Packet* packets = nullptr;
  Command* commands = nullptr;
  // In host memory, written by the kernel.
  std::uint64_t* running = nullptr;
  std::uint64_t* heartbeat = nullptr;
  std::uint64_t* left = nullptr;  ///< A Leave.
  std::uint64_t* copied = nullptr;
  std::uint64_t* replies_end = nullptr;
  std::uint64_t* events_end = nullptr;
  std::uint64_t* commands_done = nullptr;
  Reply* replies = nullptr;
  Event* events = nullptr;
  FrameWord* frames = nullptr;
  TcpCounters* counters = nullptr;
  std::uint64_t* window_least = nullptr;  ///< The least window of the connections that have space; with the counters.
  // In device memory.
  std::uint64_t* relay = nullptr;  ///< As many; see kParsedEnd.
  std::uint64_t* batches_end = nullptr;
  std::uint64_t* next_batch = nullptr;
  std::uint64_t* entered = nullptr;
  Parsed* parsed = nullptr;
  Part* parts = nullptr;
  PartPlace* places = nullptr;
  Batch* batches = nullptr;
  std::uint32_t* done = nullptr;    ///< The number of a batch that is copied, and 1.
  std::uint64_t* filled = nullptr;  ///< Bytes in each place.
  Attached* attached = nullptr;
  std::uint32_t* streams = nullptr;  ///< The stream of each slot.
  Scratch* scratch = nullptr;
};

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoStream = ~std::uint32_t{0};

/// Any role: no role is to go on. The first reason counts.
template <class Group>
HEADRACE_HD void leave(const Group& group, const View& view, Leave why) {
  group.compare_exchange_relaxed_on_device(view.relay[kLeave], std::uint64_t{0}, static_cast<std::uint64_t>(why));
}

}  // namespace headrace::ingest::resident
