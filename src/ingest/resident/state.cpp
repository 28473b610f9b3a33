#include "ingest/resident/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"
#include "ingest/resident/kernel.hpp"

namespace headrace::ingest {

using resident::Command;
using resident::CommandKind;
using resident::FrameWord;

namespace {

/// 256 KiB under way with four lines a thread, some times what a link holds. More only make a queue, in which the reads
/// of the other roles wait too: with 64 blocks an H100 came to 285 Gb/s, with 12 to 24 to 370 and more.
constexpr std::uint32_t kBuildBlocks = 16;
constexpr std::uint32_t kPacketBytesMax = 0xFFFF + kLinkBytesMax;
constexpr std::size_t kBurst = 1024;

[[nodiscard]] std::uint32_t build_blocks(Device device, const ResidentOptions& options) {
  const std::uint32_t fit = device.resident_blocks_max(resident::resident_kernel(), resident::kThreads);
  const std::uint32_t most = fit > resident::kControlBlocks ? fit - resident::kControlBlocks : 0;
  if (most == 0 || options.build_blocks > most) {
    throw UsageError(fmt::format("resident control: {} blocks that build cannot be resident on {}: at most {}",
                                 options.build_blocks, device.name(), most),
                     Errc::not_supported);
  }
  if (options.build_blocks != 0) return options.build_blocks;
  if (!device.properties().host_cores) return std::min(most, kBuildBlocks);
  // A CPU device copies with the processors that the host's thread and the two other roles leave.
  const auto processors = static_cast<std::uint32_t>(Topology::machine().processors().size());
  return std::clamp(processors, 4U, most + 3) - 3;
}

}  // namespace

ResidentControl::State::State(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options)
    : device_(device),
      options_(options),
      ring_bytes_(ring.bytes()),
      copies_(device),
      stream_(device, StreamOptions{.priority = Priority::high}),
      memory_(device, ring, layer, options, stream_),
      slots_(options.connections),
      burst_(std::min<std::size_t>(kBurst, options.packets)) {
  const LaunchShape shape{.blocks = resident::kControlBlocks + build_blocks(device, options),
                          .threads = resident::kThreads};
  // Put together first: nothing may throw once the kernel runs, which nobody would tell to leave.
  const std::string doing = fmt::format("starting resident control on {}", device.name());
  launch_resident(stream_, resident::resident_kernel(), shape, view()).or_throw(doing);
}

ResidentControl::State::~State() {
  tell(view().host[resident::kStop], 1);
  static_cast<void>(stream_.wait());
}

/// Pairs with the kernel's loads.
void ResidentControl::State::tell(std::uint64_t& word, std::uint64_t value) const noexcept {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

void ResidentControl::State::set_time(std::uint64_t now) noexcept { tell(view().host[resident::kNow], now); }

std::uint64_t ResidentControl::State::copied() const noexcept { return heard(*view().copied); }

std::size_t ResidentControl::State::packet_room() const noexcept {
  return options_.packets - static_cast<std::size_t>(packets_end_ - copied());
}

Result<std::size_t> ResidentControl::State::post(std::span<const Packet> packets) noexcept {
  for (const Packet& packet : packets) {
    if (packet.length > kPacketBytesMax || packet.ring_offset > ring_bytes_ ||
        packet.length > ring_bytes_ - packet.ring_offset) {
      return Errc::invalid_argument;
    }
  }
  const std::size_t count = std::min(packets.size(), packet_room());
  for (std::size_t i = 0; i < count; ++i) view().packets[(packets_end_ + i) & view().packet_mask] = packets[i];
  packets_end_ += count;
  counters.packets = packets_end_;
  if (count != 0) tell(view().host[resident::kPacketsEnd], packets_end_);
  return count;
}

Status ResidentControl::State::command(const Command& command) noexcept {
  if (commands_end_ - heard(*view().commands_done) > view().command_mask) return Errc::full;
  view().commands[commands_end_ & view().command_mask] = command;
  tell(view().host[resident::kCommandsEnd], ++commands_end_);
  return {};
}

std::optional<Reply> ResidentControl::State::next_reply() noexcept {
  if (heard(*view().replies_end) == replies_taken_) return std::nullopt;
  const Reply reply = view().replies[replies_taken_ & view().reply_mask];
  tell(*view().replies_taken, ++replies_taken_);
  return reply;
}

Result<std::optional<Event>> ResidentControl::State::next_event() noexcept {
  if (heard(*view().events_end) == events_taken_) return std::optional<Event>{};
  const Event event = view().events[events_taken_ & view().event_mask];
  Slot* const slot = event.kind == StreamEvent::closed ? nullptr : slot_of(event.stream);
  if (slot != nullptr && event.kind == StreamEvent::opened) {
    slot->connection = event.connection;
    slot->opened = true;
  } else if (slot != nullptr) {
    if (const Status ended = end(*slot, event); !ended) return ended.error();
    slot->frames = nullptr;
  }
  tell(*view().events_taken, ++events_taken_);
  return std::optional(event);
}

bool ResidentControl::State::settled() const noexcept {
  return heard(*view().commands_done) == commands_end_ && copied() == packets_end_ && streams_told_ == streams_ &&
         std::ranges::all_of(slots_, [](const Slot& slot) {
           return slot.frames == nullptr || !slot.opened || slot.limit == slot.frames->reserved_end();
         });
}

ResidentControl::State::Slot* ResidentControl::State::slot_of(std::uint32_t stream) noexcept {
  const auto found =
      std::ranges::find_if(slots_, [&](const Slot& slot) { return slot.frames != nullptr && slot.stream == stream; });
  return found == slots_.end() ? nullptr : &*found;
}

std::uint32_t ResidentControl::State::attach(FrameRing& frames) {
  if (!(frames.device() == device_)) {
    throw UsageError(fmt::format("frames on {} cannot be built on {}", frames.device().name(), device_.name()));
  }
  resident::check(frames.options(), options_.frames_max);
  if (frames.reserved_end() < options_.tcp.initial_limit) {
    throw UsageError(fmt::format("frames have space for {} bytes, and every stream is told of {}",
                                 frames.reserved_end(), options_.tcp.initial_limit));
  }
  const auto slot = std::ranges::find_if(slots_, [](const Slot& one) { return one.frames == nullptr; });
  if (slot == slots_.end()) throw UsageError(fmt::format("{} streams have frames already", slots_.size()));
  *slot = {.frames = &frames, .stream = streams_++, .limit = options_.tcp.initial_limit};
  const auto number = static_cast<std::size_t>(slot - slots_.begin());
  std::fill_n(view().frames + number * view().places_per_slot, frames.options().frame_count, FrameWord{});
  const std::uint32_t stream = slot->stream;
  introduce();
  return stream;
}

/// Tells the kernel of streams that have frames, in order: it opens none before all before it. Where commands have no
/// room, the next time.
void ResidentControl::State::introduce() noexcept {
  for (; streams_told_ != streams_; ++streams_told_) {
    const Slot& slot = *slot_of(streams_told_);  // no stream ends before it opens
    const FrameOptions& of = slot.frames->options();
    const Status told = command({.kind = CommandKind::attach,
                                 .stream = slot.stream,
                                 .slot = static_cast<std::uint32_t>(&slot - slots_.data()),
                                 .frame_count = of.frame_count,
                                 .frame_bytes = of.frame_bytes,
                                 .stride = slot.frames->stride_,
                                 .frames = slot.frames->data_of(0)});
    if (!told) return;
  }
}

FrameWord& ResidentControl::State::word_of(const Slot& slot, std::uint64_t number) const noexcept {
  const auto which = static_cast<std::size_t>(&slot - slots_.data());
  return view().frames[which * view().places_per_slot + number % slot.frames->options().frame_count];
}

/// Completes frames that are whole, in order.
Status ResidentControl::State::look(Slot& slot) noexcept {
  const std::size_t bytes = slot.frames->options().frame_bytes;
  while (heard(word_of(slot, slot.next).number_end) == slot.next + 1) {
    if (const Status completed = complete(slot, bytes, bytes); !completed) return completed;
  }
  return {};
}

/// The next frame, which has so many bytes of the stream.
Status ResidentControl::State::complete(Slot& slot, std::size_t bytes, std::size_t length) noexcept {
  FrameRing::Place* const place = slot.frames->fillable(slot.next);
  if (place == nullptr) return Errc::invalid_argument;  // nothing is accepted where no space was told of
  place->placed = bytes;
  place->length = length;
  place->missing = length - bytes;
  ++slot.next;
  slot.frames->complete(*place);
  return {};
}

/// The kernel has said what is in frames that are not whole, before the event.
Status ResidentControl::State::end(Slot& slot, const Event& event) noexcept {
  if (const Status looked = look(slot); !looked) return looked;
  const std::size_t bytes = slot.frames->options().frame_bytes;
  const auto there = [&](std::uint64_t number) -> std::size_t {
    const FrameWord& word = word_of(slot, number);
    return heard(word.number_end) == number + 1 ? bytes : word.partial;
  };
  const bool cut = event.kind == StreamEvent::finished || options_.cut_broken;
  std::uint64_t end = cut ? event.offset : slot.next * bytes;
  if (!cut) {
    for (std::uint64_t number = slot.next; number * bytes < slot.limit; ++number) {
      if (there(number) != 0) end = (number + 1) * bytes;
    }
  }
  while (slot.next * bytes < end) {
    const std::size_t length = std::min<std::uint64_t>(bytes, end - slot.next * bytes);
    const std::size_t placed = std::min(there(slot.next), length);  // what lies behind a gap may be cut off
    if (const Status completed = complete(slot, placed, length); !completed) return completed;
  }
  slot.frames->end_at(end);
  return {};
}

Status ResidentControl::State::raise_limit(Slot& slot) noexcept {
  const std::uint64_t limit = slot.frames->reserved_end();
  if (!slot.opened || limit == slot.limit) return {};
  const Status told =
      command({.kind = CommandKind::limit, .connection = slot.connection, .stream = slot.stream, .limit = limit});
  if (told) slot.limit = limit;
  return told;
}

Status ResidentControl::State::poll() noexcept {
  introduce();
  for (Slot& slot : slots_) {
    if (slot.frames == nullptr) continue;
    if (const Status looked = look(slot); !looked) return looked;
    static_cast<void>(raise_limit(slot));  // where commands have no room, next time
  }
  report();
  return stopped_ ? Status{} : watch();
}

}  // namespace headrace::ingest
