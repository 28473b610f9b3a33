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

/// Packets that are processed together.
inline constexpr std::uint32_t kWindow = 256;
/// Least bytes of a frame: packets are cut at the ends of frames, and all parts of a window must fit in the list.
inline constexpr std::uint32_t kFrameBytesMin = 4096;
inline constexpr std::uint32_t kPiecesOfWindow = 512;
inline constexpr std::uint32_t kAnswersOfWindow = 256;  ///< Replies, and also events.
inline constexpr std::uint32_t kCommandsOfWindow = 32;
/// Blocks of the other roles: poll and acknowledge.
inline constexpr std::uint32_t kControlBlocks = 2;
/// Most parts of a window: 16 MiB of payload, cut at every kFrameBytesMin, at packets and at pieces.
inline constexpr std::uint32_t kPartsOfWindow = 8192;
static_assert(std::uint64_t{kWindow} * 0x10000 / kFrameBytesMin + 2 * (kWindow + kPiecesOfWindow) < kPartsOfWindow);

enum class CommandKind : std::uint32_t { attach, limit, close, abort, report };

struct Command {
  CommandKind kind = CommandKind::report;
  std::uint32_t connection = 0;
  std::uint32_t stream = 0;
  std::uint32_t slot = 0;         ///< attach: the slot of the stream, which is attached before it opens.
  std::uint32_t frame_count = 0;  ///< attach: this and the next three describe the stream's frames.
  std::uint64_t frame_bytes = 0;
  std::uint64_t stride = 0;
  std::byte* frames = nullptr;
  std::uint64_t limit = 0;
};

/// Why the kernel has left.
enum class Leave : std::uint32_t {
  no,
  told,
  no_room_for_replies,  ///< This and the next two: a wait exceeded its limit.
  no_room_for_events,
  parts_not_copied
};

/// Indices of the words in host memory that the host writes and the poll role reads together.
inline constexpr std::uint32_t kPacketsEnd = 0;
inline constexpr std::uint32_t kNow = 1;
inline constexpr std::uint32_t kCommandsEnd = 2;
inline constexpr std::uint32_t kStop = 3;
inline constexpr std::uint32_t kHostWords = 4;
/// The same for the words in device memory that the poll role writes. Any role may once set the last one to a Leave.
inline constexpr std::uint32_t kParsedEnd = kPacketsEnd;
inline constexpr std::uint32_t kLeave = kStop;

/// The state of a place in a stream's ring of frames; in host memory.
struct FrameWord {
  std::uint64_t number_end = 0;  ///< One more than the number of the frame that is complete here.
  std::uint64_t partial = 0;     ///< After the end of the stream: bytes of the incomplete frame.
};

/// A packet and its parsed headers.
struct Parsed {
  Packet packet;
  Headers headers;
  ParseResult result;
};

/// The target of a part.
struct PartPlace {
  std::uint64_t number;  ///< The number of the frame.
  std::uint32_t place;   ///< The index of the place among those of all slots.
};

/// Parts for a team. Packets before packets_end are no longer needed once this batch and all earlier ones are copied.
struct Batch {
  std::uint64_t packets_end;
  std::uint64_t first;
  std::uint32_t count;
};

/// The frames of the stream in a slot. The host assigns slots.
struct Attached {
  std::byte* frames = nullptr;
  std::uint64_t frame_bytes = 0;
  std::uint64_t stride = 0;
  std::uint32_t frame_count = 0;
};

/// The output of the acknowledge role's sequencer, which the rest of the block then hands on.
struct Scratch {
  Piece pieces[kPiecesOfWindow];
  alignas(kLineBytes) Reply replies[kAnswersOfWindow];
  Event events[kAnswersOfWindow];
};

struct View {
  Layer layer = Layer::ip;
  std::uint32_t packet_mask = 0;  ///< For the rings of packets and of parsed headers.
  std::uint32_t part_mask = 0;    ///< For the rings of parts, their places, and batches.
  std::uint32_t reply_mask = 0;
  std::uint32_t event_mask = 0;
  std::uint32_t command_mask = 0;
  std::uint32_t slots = 0;
  std::uint32_t places_per_slot = 0;
  std::uint64_t wait_limit_ns = 0;
  const std::byte* ring = nullptr;
  TcpView tcp;

  // In host memory, written by the host.
  std::uint64_t* host = nullptr;  ///< kHostWords words.
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
  std::uint64_t* window_least = nullptr;  ///< The smallest window of connections with space, written with the counters.
  // In device memory.
  std::uint64_t* relay = nullptr;  ///< kHostWords words; see kParsedEnd.
  std::uint64_t* batches_end = nullptr;
  std::uint64_t* next_batch = nullptr;
  std::uint64_t* entered = nullptr;
  Parsed* parsed = nullptr;
  Part* parts = nullptr;
  PartPlace* places = nullptr;
  Batch* batches = nullptr;
  std::uint32_t* done = nullptr;    ///< One more than the number of the batch that was copied.
  std::uint64_t* filled = nullptr;  ///< Bytes in each place.
  Attached* attached = nullptr;
  std::uint32_t* streams = nullptr;  ///< The stream of each slot.
  Scratch* scratch = nullptr;
};

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoStream = ~std::uint32_t{0};

/// Any role: tells all roles to leave. The first reason counts.
template <class Group>
HEADRACE_HD void leave(const Group& group, const View& view, Leave why) {
  group.compare_exchange_relaxed_on_device(view.relay[kLeave], std::uint64_t{0}, static_cast<std::uint64_t>(why));
}

}  // namespace headrace::ingest::resident
