#include "ingest/resident/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/base/error.hpp"
#include "ingest/resident/kernel.hpp"
#include "ingest/resident/memory.hpp"

namespace headrace::ingest {

using resident::Command;
using resident::CommandKind;
using resident::FrameWord;

namespace {

/// 256 KiB in flight with four lines per thread, several times what a link holds. More blocks only form a queue, in
/// which the reads of the other roles wait, too: with 64 blocks an H100 reached 285 Gb/s, with 12 to 24 at least 370.
constexpr std::uint32_t kBuildBlocks = 16;
constexpr std::uint32_t kPacketBytesMax = 0xFFFF + kLinkBytesMax;
constexpr std::size_t kBurst = 1024;
constexpr Duration kReportEvery = std::chrono::milliseconds(50);

[[nodiscard]] std::uint32_t build_blocks(Device device, const ResidentOptions& options) {
  const std::uint32_t blocks = ResidentKernel::block_count(
      device, resident::resident_kernel(), resident::kThreads, resident::kControlBlocks, options.build_blocks,
      fmt::format("resident control: {} building blocks", options.build_blocks));
  const bool chosen = options.build_blocks != 0 || device.properties().host_cores;
  return chosen ? blocks : std::min(blocks, kBuildBlocks);
}

}  // namespace

ResidentControl::ResidentControl(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options)
    : device_(device),
      options_(options),
      ring_bytes_(ring.bytes()),
      copies_(device),
      memory_(std::make_shared<const resident::Memory>(device, ring, layer, options, copies_)),
      slots_(options.connections),
      burst_(std::min<std::size_t>(kBurst, options.packets)),
      kernel_(device, [this](bool /*at_once*/) { tell(view().host[resident::kStop], 1); },
              {.priority = Priority::high}) {
  kernel_.keep(memory_);
  const LaunchShape shape{.blocks = resident::kControlBlocks + build_blocks(device, options),
                          .threads = resident::kThreads};
  const auto launch = [&](StreamRef stream) {
    return launch_resident(stream, resident::resident_kernel(), shape, view());
  };
  kernel_.run(launch).or_throw(fmt::format("starting resident control on {}", device.name()));
  const Status started = kernel_.wait_started([this] { return heard(*view().running) != 0; }, options.wait_limit);
  started.or_throw(fmt::format(
      "resident control: not all of its blocks started on {}; another resident kernel may occupy it", device.name()));
}

const resident::View& ResidentControl::view() const noexcept { return memory_->view(); }

void ResidentControl::set_time(std::uint64_t now) noexcept { tell(view().host[resident::kNow], now); }

std::uint64_t ResidentControl::copied() const noexcept { return heard(*view().copied); }

std::size_t ResidentControl::room() const noexcept {
  return options_.packets - static_cast<std::size_t>(packets_end_ - copied());
}

Result<std::size_t> ResidentControl::post(std::span<const Packet> packets) noexcept {
  for (const Packet& packet : packets) {
    if (packet.length > kPacketBytesMax || packet.ring_offset > ring_bytes_ ||
        packet.length > ring_bytes_ - packet.ring_offset) {
      return Errc::invalid_argument;
    }
  }
  const std::size_t count = std::min(packets.size(), room());
  for (std::size_t i = 0; i < count; ++i) view().packets[(packets_end_ + i) & view().packet_mask] = packets[i];
  packets_end_ += count;
  counters_.packets = packets_end_;
  if (count != 0) tell(view().host[resident::kPacketsEnd], packets_end_);
  return count;
}

Status ResidentControl::command(const Command& command) noexcept {
  if (commands_end_ - heard(*view().commands_done) > view().command_mask) return Errc::full;
  view().commands[commands_end_ & view().command_mask] = command;
  tell(view().host[resident::kCommandsEnd], ++commands_end_);
  return {};
}

Status ResidentControl::close(std::uint32_t connection, std::uint32_t stream) noexcept {
  return command({.kind = CommandKind::close, .connection = connection, .stream = stream});
}

Status ResidentControl::abort(std::uint32_t connection, std::uint32_t stream) noexcept {
  return command({.kind = CommandKind::abort, .connection = connection, .stream = stream});
}

std::optional<Reply> ResidentControl::next_reply() noexcept {
  if (heard(*view().replies_end) == replies_taken_) return std::nullopt;
  const Reply reply = view().replies[replies_taken_ & view().reply_mask];
  tell(*view().replies_taken, ++replies_taken_);
  return reply;
}

Result<std::optional<Event>> ResidentControl::next_event() noexcept {
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

bool ResidentControl::settled() const noexcept {
  return heard(*view().commands_done) == commands_end_ && copied() == packets_end_ && streams_told_ == streams_ &&
         std::ranges::all_of(slots_, [](const Slot& slot) {
           return slot.frames == nullptr || !slot.opened || slot.limit == slot.frames->reserved_end();
         });
}

ResidentControl::Slot* ResidentControl::slot_of(std::uint32_t stream) noexcept {
  const auto found =
      std::ranges::find_if(slots_, [&](const Slot& slot) { return slot.frames != nullptr && slot.stream == stream; });
  return found == slots_.end() ? nullptr : &*found;
}

std::uint32_t ResidentControl::attach(FrameRing& frames) {
  if (!(frames.device() == device_)) {
    throw UsageError(fmt::format("frames on {} cannot be built on {}", frames.device().name(), device_.name()));
  }
  resident::check(frames.options(), options_.frames_max);
  if (frames.reserved_end() < options_.tcp.initial_limit) {
    throw UsageError(fmt::format("the frames have space for {} bytes, which is less than tcp.initial_limit, {} bytes",
                                 frames.reserved_end(), options_.tcp.initial_limit));
  }
  const auto slot = std::ranges::find_if(slots_, [](const Slot& one) { return one.frames == nullptr; });
  if (slot == slots_.end()) throw UsageError(fmt::format("all {} streams already have frames", slots_.size()));
  *slot = {.frames = &frames, .stream = streams_++, .limit = options_.tcp.initial_limit};
  const auto number = static_cast<std::size_t>(slot - slots_.begin());
  std::fill_n(view().frames + number * view().places_per_slot, frames.options().frame_count, FrameWord{});
  const std::uint32_t stream = slot->stream;
  introduce();
  return stream;
}

/// Tells the kernel of streams that have frames, in order: it opens a stream only after all earlier ones. If commands
/// have no room, the next call continues.
void ResidentControl::introduce() noexcept {
  for (; streams_told_ != streams_; ++streams_told_) {
    const Slot& slot = *slot_of(streams_told_);  // a stream does not end before it opens
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

FrameWord& ResidentControl::word_of(const Slot& slot, std::uint64_t number) const noexcept {
  const auto which = static_cast<std::size_t>(&slot - slots_.data());
  return view().frames[which * view().places_per_slot + number % slot.frames->options().frame_count];
}

/// Completes frames that have all their bytes, in order.
Status ResidentControl::look(Slot& slot) noexcept {
  const std::size_t bytes = slot.frames->options().frame_bytes;
  while (heard(word_of(slot, slot.next).number_end) == slot.next + 1) {
    if (const Status completed = complete(slot, bytes, bytes); !completed) return completed;
  }
  return {};
}

/// Completes the next frame, with `bytes` bytes of the stream in a length of `length`.
Status ResidentControl::complete(Slot& slot, std::size_t bytes, std::size_t length) noexcept {
  FrameRing::Place* const place = slot.frames->fillable(slot.next);
  if (place == nullptr) return Errc::invalid_argument;  // bytes are accepted only in announced space
  place->placed = bytes;
  place->length = length;
  place->missing = length - bytes;
  ++slot.next;
  slot.frames->complete(*place);
  return {};
}

/// Ends a stream. Before the event, the kernel has reported how many bytes incomplete frames have.
Status ResidentControl::end(Slot& slot, const Event& event) noexcept {
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
    const std::size_t placed = std::min(there(slot.next), length);  // bytes behind a gap may be cut off
    if (const Status completed = complete(slot, placed, length); !completed) return completed;
  }
  slot.frames->end_at(end);
  return {};
}

Status ResidentControl::raise_limit(Slot& slot) noexcept {
  const std::uint64_t limit = slot.frames->reserved_end();
  if (!slot.opened || limit == slot.limit) return {};
  const Status told =
      command({.kind = CommandKind::limit, .connection = slot.connection, .stream = slot.stream, .limit = limit});
  if (told) slot.limit = limit;
  return told;
}

Status ResidentControl::poll() noexcept {
  introduce();
  for (Slot& slot : slots_) {
    if (slot.frames == nullptr) continue;
    if (const Status looked = look(slot); !looked) return looked;
    static_cast<void>(raise_limit(slot));  // if commands have no room, the next poll() does it
  }
  report();
  return stopped_ ? Status{} : watch();
}

Result<std::size_t> ResidentControl::step(Source& source, Ring& ring, Duration timeout) noexcept {
  set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
  const std::size_t most = std::min(burst_.size(), room());
  std::size_t count = 0;
  if (most != 0) {
    const bool idle = copied() == packets_end_;
    const auto came = source.receive(std::span(burst_).first(most), idle ? timeout : Duration::zero());
    if (!came) return came.error();
    count = *came;
    set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
    const auto posted = post(std::span(burst_).first(count));
    if (!posted) return posted.error();
  }
  if (const Status polled = poll(); !polled) return polled.error();
  while (const auto reply = next_reply()) {
    if (source.send(std::span(reply->bytes, reply->length))) {
      ++counters_.replies_sent;
    } else {
      ++counters_.replies_lost;  // as if the network had lost it
    }
  }
  ring.release(copied());
  return count;
}

/// Requests counters, and takes those of an earlier request.
void ResidentControl::report() noexcept {
  if (report_at_ != 0) {
    if (heard(*view().commands_done) < report_at_) return;
    counters_.tcp = *view().counters;
    counters_.window_least_bytes = *view().window_least;
    report_at_ = 0;
  }
  const Time now = SteadyClock::now();
  if (stopped_ || now - reported_ < kReportEvery || !command({.kind = CommandKind::report})) return;
  reported_ = now;
  report_at_ = commands_end_;
}

/// Checks that the kernel is running and makes progress.
Status ResidentControl::watch() noexcept {
  const Status status = kernel_.look(heard(*view().heartbeat), options_.wait_limit, SteadyClock::now());
  return heard(*view().left) != 0 ? Errc::hung : status;
}

Status ResidentControl::stop() noexcept {
  if (stopped_) return {};
  if (const Status left = kernel_.leave(options_.wait_limit); !left) return left;
  stopped_ = true;
  report_at_ = 0;
  Status brought = copies_.copy(view().counters, &view().tcp.shared->counters, sizeof(TcpCounters));
  if (brought) brought = copies_.wait();
  if (brought) counters_.tcp = *view().counters;
  counters_.window_least_bytes = 0;
  return brought ? poll() : brought;
}

std::string ResidentControl::failure() const {
  const auto why = static_cast<resident::Leave>(heard(*view().left));
  const auto waited = [&](std::string_view what) {
    return fmt::format("resident control on {} has stopped: for {} s, {}", device_.name(),
                       std::chrono::duration<double>(options_.wait_limit).count(), what);
  };
  switch (why) {
    case resident::Leave::no: break;
    case resident::Leave::told: return {};
    case resident::Leave::no_room_for_replies: return waited("the host took no replies from their full ring");
    case resident::Leave::no_room_for_events: return waited("the host took no events from their full ring");
    case resident::Leave::parts_not_copied: return waited("the building blocks copied no payloads");
  }
  return fmt::format("resident control on {} does not respond", device_.name());
}

}  // namespace headrace::ingest
