#pragma once

#include <cstdint>

#include "headrace/ingest/tcp_sequencer.hpp"
#include "ingest/resident_parts.hpp"
#include "ingest/resident_report.hpp"
#include "ingest/resident_runs.hpp"
#include "ingest/resident_view.hpp"

namespace headrace::ingest::resident {

/// The role that decides: one block, of which one thread runs the sequencer over runs of packets, and all others find
/// the runs before and list what was accepted after it.
template <class Group>
class Acknowledge {
 public:
  HEADRACE_HD Acknowledge(const Group& group, const View& view)
      : group_(group),
        view_(view),
        window_(group.template shared<Window>()),
        tcp_(view.tcp),
        runs_(group, view, window_),
        parts_(group, view, window_) {
    tcp_.shared = reinterpret_cast<TcpShared*>(window_.shared);
  }

  HEADRACE_HD void run() {
    if (group_.rank() == 0) window_.deadline = kNever;
    copy_shared(tcp_.shared, view_.tcp.shared);
    while (hear()) {
      const auto count = static_cast<std::uint32_t>(lesser(window_.heard[kParsedEnd] - runs_.taken(), kWindow));
      const bool quiet =
          count == 0 && commands_done_ == window_.heard[kCommandsEnd] && window_.heard[kNow] < window_.deadline;
      if (!quiet) {
        touch_state();
        runs_.find(count);
        Output output = output_of(*view_.scratch);
        TcpSequencer sequencer(tcp_, view_.ring, output, window_.heard[kNow]);
        if (group_.rank() == 0) sequence(sequencer, output);
        group_.sync();
        if (!parts_.list(runs_)) return;
        if (group_.rank() == 0) answer(sequencer, output);  // which nobody waits for as for bytes
        group_.sync();
        copy_shared(view_.tcp.shared, tcp_.shared);  // this role alone changes it
        if (window_.report) report(group_, view_, tcp_, window_);
        if (!hand_replies_on() || !settle() || !hand_events_on()) return;
        runs_.advance(window_.taken);
        commands_done_ = window_.commands_done;
      }
      parts_.retire();
      if (group_.rank() == 0) publish();
      if (quiet) group_.relax_briefly();
    }
  }

 private:
  static constexpr std::uint32_t kReplyLines = sizeof(Reply) / kLineBytes;

  /// Every thread.
  HEADRACE_HD void copy_shared(TcpShared* to, const TcpShared* from) const {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    auto* const bytes = reinterpret_cast<std::byte*>(to);
    const auto* const source = reinterpret_cast<const std::byte*>(from);
    for (std::uint32_t w = group_.rank(); w < kSharedWords; w += group_.size()) {
      memcpy(__builtin_assume_aligned(bytes + w * kWord, kWord), __builtin_assume_aligned(source + w * kWord, kWord),
             kWord);
    }
  }

  /// Every thread: brings the connection that packets most likely are of near to the thread that will look at it field
  /// by field.
  HEADRACE_HD void touch_state() {
    const std::uint32_t i = tcp_.shared->found_last;
    if (i == kNoConnection) return;
    const auto* const bytes = reinterpret_cast<const std::byte*>(tcp_.connections + i);
    std::uint32_t seen = 0;
    for (std::uint32_t l = group_.rank(); l < sizeof(TcpConnection) / kLineBytes; l += group_.size()) {
      seen |= load_line(bytes + std::size_t{l} * kLineBytes).words[0];
    }
    if (seen == 0x5EED) window_.touched = seen;  // never mind what: the loads are wanted
  }

  /// Every thread: what the poll role has told; false when this one is to leave.
  [[nodiscard]] HEADRACE_HD bool hear() {
    group_.sync();
    for (std::uint32_t w = group_.rank(); w < kHostWords; w += group_.size()) {
      window_.heard[w] = group_.load_on_device(view_.relay[w]);
    }
    group_.sync();
    return window_.heard[kLeave] == 0;
  }

  [[nodiscard]] HEADRACE_HD static Output output_of(Scratch& scratch) {
    Output output;
    output.pieces = scratch.pieces;
    output.replies = scratch.replies;
    output.events = scratch.events;
    output.pieces_max = kPiecesOfWindow;
    output.replies_max = output.events_max = kAnswersOfWindow;
    return output;
  }

  /// One thread: commands and packets.
  HEADRACE_HD void sequence(TcpSequencer& sequencer, const Output& output) {
    obey(sequencer);
    TcpCounters& counters = tcp_.shared->counters;
    const std::uint64_t bytes_before = counters.bytes;
    std::uint32_t run = 0;
    for (; run < window_.run_count && has_room(output); ++run) {
      window_.pieces[run] = static_cast<std::uint16_t>(output.piece_count);
      receive(sequencer, window_.first[run], window_.first[run + 1]);
    }
    window_.pieces[run] = static_cast<std::uint16_t>(output.piece_count);
    window_.bytes = counters.bytes - bytes_before;
    window_.taken = window_.first[run];
    window_.piece_count = output.piece_count;
  }

  /// One thread: what was put off to the end of the burst, and timers.
  HEADRACE_HD void answer(TcpSequencer& sequencer, const Output& output) {
    sequencer.flush();
    sequencer.tick();
    window_.deadline = sequencer.next_deadline();
    window_.reply_count = output.reply_count;
    window_.event_count = output.event_count;
  }

  /// Whatever a run comes to can be said, and flush() besides.
  [[nodiscard]] HEADRACE_HD static bool has_room(const Output& output) {
    constexpr std::uint32_t kMargin = 2 * (Output::kRepliesOfPacket + Output::kEventsOfPacket);
    return output.piece_count + Intervals::kMax + 1 <= output.pieces_max &&
           output.reply_count + kMargin <= output.replies_max && output.event_count + kMargin <= output.events_max;
  }

  HEADRACE_HD void receive(TcpSequencer& sequencer, std::uint32_t first, std::uint32_t last) {
    const Parsed& parsed = runs_.packet(first);
    if (last - first == 1) {
      sequencer.receive(parsed.packet, parsed.result, parsed.headers, parsed.link);
      return;
    }
    Packet merged = parsed.packet;
    Headers headers = parsed.headers;
    if (merged.segment_bytes == 0) {
      merged.segment_bytes = static_cast<std::uint16_t>(lesser(headers.payload_length, 0xFFFFU));
    }
    headers.payload_length = window_.start[last] - window_.start[first];
    sequencer.receive(merged, parsed.result, headers, parsed.link);
    tcp_.shared->counters.packets += last - first - 1;
    tcp_.shared->counters.segments += last - first - 1;
  }

  HEADRACE_HD void obey(TcpSequencer& sequencer) {
    window_.report = false;
    const std::uint64_t end = lesser(window_.heard[kCommandsEnd], commands_done_ + kCommandsOfWindow);
    for (std::uint64_t c = commands_done_; c < end; ++c) {
      const Command command = view_.commands[c & view_.command_mask];
      switch (command.kind) {
        case CommandKind::attach:
          view_.attached[command.slot] = {command.frames, command.frame_bytes, command.stride, command.frame_count};
          view_.streams[command.slot] = command.stream;
          break;
        case CommandKind::limit: sequencer.set_limit(command.connection, command.stream, command.limit); break;
        case CommandKind::close: sequencer.close(command.connection, command.stream); break;
        case CommandKind::abort: (void)sequencer.abort(command.connection, command.stream); break;  // there is room
        case CommandKind::report: window_.report = true; break;
      }
    }
    window_.commands_done = end;
  }

  [[nodiscard]] HEADRACE_HD bool hand_replies_on() {
    if (!wait_for_room(*view_.replies_taken, replies_taken_, replies_end_ + window_.reply_count, view_.reply_mask,
                       Leave::no_room_for_replies)) {
      return false;
    }
    for (std::uint32_t l = group_.rank(); l < window_.reply_count * kReplyLines; l += group_.size()) {
      const Reply& from = view_.scratch->replies[l / kReplyLines];
      const std::uint32_t at = l % kReplyLines * kLineBytes;
      if (at >= offsetof(Reply, bytes) + from.length) continue;
      Reply& to = view_.replies[(replies_end_ + l / kReplyLines) & view_.reply_mask];
      store_line(reinterpret_cast<std::byte*>(&to) + at, load_line(reinterpret_cast<const std::byte*>(&from) + at));
    }
    replies_end_ += window_.reply_count;
    return true;
  }

  [[nodiscard]] HEADRACE_HD bool hand_events_on() {
    if (!wait_for_room(*view_.events_taken, events_taken_, events_end_ + window_.event_count, view_.event_mask,
                       Leave::no_room_for_events)) {
      return false;
    }
    for (std::uint32_t e = group_.rank(); e < window_.event_count; e += group_.size()) {
      view_.events[(events_end_ + e) & view_.event_mask] = view_.scratch->events[e];
    }
    events_end_ += window_.event_count;
    return true;
  }

  /// Every thread: before the host hears that a stream has ended, all its bytes are copied, and of frames that are not
  /// whole it is told how many are there.
  [[nodiscard]] HEADRACE_HD bool settle() {
    for (std::uint32_t e = 0; e < window_.event_count; ++e) {
      const Event& event = view_.scratch->events[e];
      if (event.kind == StreamEvent::opened || event.kind == StreamEvent::closed) continue;
      const std::uint32_t slot = slot_of(view_, event.stream);
      if (slot == kNoSlot) continue;
      const bool copied = wait_until(group_, view_, Leave::parts_not_copied, [&] {
        if (parts_.all_copied()) return true;
        parts_.retire();
        return false;
      });
      if (!copied) return false;
      for (std::uint32_t f = group_.rank(); f < view_.attached[slot].frame_count; f += group_.size()) {
        const std::uint32_t place = slot * view_.places_per_slot + f;
        view_.frames[place].partial = group_.load_on_device(view_.filled[place]);
        group_.store_relaxed_on_device(view_.filled[place], std::uint64_t{0});
      }
      group_.sync();
      if (group_.rank() == 0) view_.streams[slot] = kNoStream;
      group_.sync();
    }
    return true;
  }

  /// Every thread: until `end` lies within a ring of the host's, of which `taken` was known to be free again.
  [[nodiscard]] HEADRACE_HD bool wait_for_room(const std::uint64_t& word, std::uint64_t& taken, std::uint64_t end,
                                               std::uint32_t mask, Leave why) {
    return wait_until(group_, view_, why, [&] {
      if (end - taken <= std::uint64_t{mask} + 1) return true;
      if (group_.rank() == 0) publish();  // or the host would not know what to take
      taken = group_.broadcast(group_.rank() == 0 ? group_.load(word) : 0);
      return false;
    });
  }

  /// One thread: tells the host what is new.
  HEADRACE_HD void publish() {
    tell(*view_.replies_end, told_.replies_end, replies_end_);
    tell(*view_.events_end, told_.events_end, events_end_);
    tell(*view_.commands_done, told_.commands_done, commands_done_);
    tell(*view_.copied, told_.copied, parts_.copied());
  }
  HEADRACE_HD void tell(std::uint64_t& word, std::uint64_t& told, std::uint64_t value) const {
    if (told != value) group_.store(word, value);  // pairs with loads of ResidentControl::State
    told = value;
  }

  struct Told {
    std::uint64_t replies_end;
    std::uint64_t events_end;
    std::uint64_t commands_done;
    std::uint64_t copied;
  };

  const Group& group_;
  const View& view_;
  Window& window_;
  TcpView tcp_;  ///< With what is near to this block.
  // Of each thread, and the same for all.
  Runs<Group> runs_;
  Parts<Group> parts_;
  std::uint64_t commands_done_ = 0;
  std::uint64_t replies_end_ = 0;
  std::uint64_t replies_taken_ = 0;
  std::uint64_t events_end_ = 0;
  std::uint64_t events_taken_ = 0;
  Told told_{};  ///< Of the thread that tells.
};

}  // namespace headrace::ingest::resident
