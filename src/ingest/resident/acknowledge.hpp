#pragma once

#include <cstdint>

#include "ingest/builder/gather_body.hpp"
#include "ingest/resident/report.hpp"
#include "ingest/resident/runs.hpp"
#include "ingest/resident/view.hpp"
#include "ingest/tcp/sequencer.hpp"

namespace headrace::ingest::resident {

/// The role that decides, in one block: one thread runs the sequencer over runs of packets. Before it, all threads find
/// the runs; after it, they list the accepted parts.
template <class Group>
class Acknowledge {
 public:
  HEADRACE_HD Acknowledge(const Group& group, const View& view)
      : group_(group), view_(view), window_(group.template shared<Window>()), runs_(group, view, window_) {}

  HEADRACE_HD void run() {
    if (group_.rank() == 0) window_.deadline = kNever;
    while (hear()) {
      const auto count = static_cast<std::uint32_t>(lesser(window_.heard[kParsedEnd] - runs_.taken(), kWindow));
      const bool quiet =
          count == 0 && commands_done_ == window_.heard[kCommandsEnd] && window_.heard[kNow] < window_.deadline;
      if (!quiet) {
        runs_.find(count);
        if (group_.rank() == 0) sequence();
        group_.sync();
        if (window_.report) report(group_, view_, window_);
        if (!list_parts() || !hand_replies_on() || !settle() || !hand_events_on()) return;
        runs_.advance(window_.taken);
        commands_done_ = window_.commands_done;
      }
      retire();
      if (group_.rank() == 0) publish();
      if (quiet) group_.relax();
    }
  }

 private:
  static constexpr std::uint32_t kReplyLines = sizeof(Reply) / kLineBytes;

  /// Every thread: reads the words of the poll role. False if the block is to leave.
  [[nodiscard]] HEADRACE_HD bool hear() {
    group_.sync();
    for (std::uint32_t w = group_.rank(); w < kHostWords; w += group_.size()) {
      window_.heard[w] = group_.load_on_device(view_.relay[w]);
    }
    group_.sync();
    return window_.heard[kLeave] == 0;
  }

  /// One thread: handles commands, packets and timers.
  HEADRACE_HD void sequence() {
    Output output;
    output.pieces = view_.scratch->pieces;
    output.replies = view_.scratch->replies;
    output.events = view_.scratch->events;
    output.pieces_max = kPiecesOfWindow;
    output.replies_max = output.events_max = kAnswersOfWindow;
    TcpSequencer sequencer(view_.tcp, view_.ring, output, window_.heard[kNow]);
    obey(sequencer);
    TcpCounters& counters = view_.tcp.shared->counters;
    const std::uint64_t bytes_before = counters.bytes;
    std::uint32_t run = 0;
    for (; run < window_.run_count && has_room(output); ++run) {
      window_.pieces[run] = static_cast<std::uint16_t>(output.piece_count);
      receive(sequencer, window_.first[run], window_.first[run + 1]);
    }
    window_.pieces[run] = static_cast<std::uint16_t>(output.piece_count);
    sequencer.flush();
    sequencer.tick();
    window_.deadline = sequencer.next_deadline();
    window_.bytes = counters.bytes - bytes_before;
    window_.taken = window_.first[run];
    window_.piece_count = output.piece_count;
    window_.reply_count = output.reply_count;
    window_.event_count = output.event_count;
  }

  /// True if the output has room for everything that a run and flush() may produce.
  [[nodiscard]] HEADRACE_HD static bool has_room(const Output& output) {
    constexpr std::uint32_t kMargin = 2 * (Output::kRepliesOfPacket + Output::kEventsOfPacket);
    return output.piece_count + Intervals::kMax + 1 <= output.pieces_max &&
           output.reply_count + kMargin <= output.replies_max && output.event_count + kMargin <= output.events_max;
  }

  HEADRACE_HD void receive(TcpSequencer& sequencer, std::uint32_t first, std::uint32_t last) {
    const Parsed& parsed = runs_.packet(first);
    if (last - first == 1) {
      sequencer.receive(parsed.packet, parsed.result, parsed.headers);
      return;
    }
    Packet merged = parsed.packet;
    Headers headers = parsed.headers;
    if (merged.segment_bytes == 0) {
      merged.segment_bytes = static_cast<std::uint16_t>(lesser(headers.payload_length, 0xFFFFU));
    }
    headers.payload_length = window_.start[last] - window_.start[first];
    sequencer.receive(merged, parsed.result, headers);
    view_.tcp.shared->counters.packets += last - first - 1;
    view_.tcp.shared->counters.segments += last - first - 1;
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
          sequencer.set_streams_limit(command.stream + 1, command.stream + 1);
          break;
        case CommandKind::limit: sequencer.set_limit(command.connection, command.stream, command.limit); break;
        case CommandKind::close: sequencer.close(command.connection, command.stream); break;
        case CommandKind::abort: (void)sequencer.abort(command.connection, command.stream); break;  // there is room
        case CommandKind::report: window_.report = true; break;
      }
    }
    window_.commands_done = end;
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t slot_of(std::uint32_t stream) const {
    for (std::uint32_t slot = 0; slot < view_.slots; ++slot) {
      if (view_.streams[slot] == stream) return slot;
    }
    return kNoSlot;
  }

  /// Every thread: hands accepted parts to the build role. False if the block is to leave.
  [[nodiscard]] HEADRACE_HD bool list_parts() {
    if (window_.taken == 0) return true;
    for (std::uint32_t p = group_.rank(); p < window_.piece_count; p += group_.size()) {
      Piece& piece = view_.scratch->pieces[p];
      piece.stream = slot_of(piece.stream);
    }
    group_.sync();
    std::uint32_t count = 0;
    for (std::uint32_t base = 0; base < window_.taken; base += group_.size()) {
      const std::uint32_t i = base + group_.rank();
      std::uint32_t own = 0;
      if (i < window_.taken) runs_.for_each_part_of(i, [&](const Part&, const PartPlace&) { ++own; });
      std::uint32_t here = 0;
      const std::uint32_t before = count + group_.sum_before(own, here);
      if (i < window_.taken) window_.parts[i] = before;
      count += here;
    }
    constexpr std::uint32_t kMost = Group::kTeam == 1 ? kTeamParts : Group::kTeam;  // as gather() requires
    const auto per_team = static_cast<std::uint32_t>(lesser(parts_of_team(window_.bytes, count), kMost));
    const std::uint32_t batches =
        count == 0 ? 1 : (count + per_team - 1) / per_team;  // at least one, which reports the packets
    if (!make_room(count, batches)) return false;
    for (std::uint32_t i = group_.rank(); i < window_.taken; i += group_.size()) {
      std::uint64_t at = parts_end_ + window_.parts[i];
      runs_.for_each_part_of(i, [&](const Part& part, const PartPlace& place) {
        view_.parts[at & view_.part_mask] = part;
        view_.places[at & view_.part_mask] = place;
        ++at;
      });
    }
    for (std::uint32_t b = group_.rank(); b < batches; b += group_.size()) {
      const std::uint32_t first = b * per_team;
      const std::uint64_t packets_end = runs_.taken() + (b + 1 == batches ? window_.taken : 0);
      const std::uint32_t left = count - first;
      view_.batches[(batches_end_ + b) & view_.part_mask] = {packets_end, parts_end_ + first,
                                                             left < per_team ? left : per_team};
    }
    parts_end_ += count;
    batches_end_ += batches;
    group_.sync();
    if (group_.rank() == 0) group_.store_on_device(*view_.batches_end, batches_end_);  // pairs with Build::wait_for()
    return true;
  }

  [[nodiscard]] HEADRACE_HD bool make_room(std::uint32_t parts, std::uint32_t batches) {
    const std::uint64_t size = std::uint64_t{view_.part_mask} + 1;
    return wait_until(Leave::parts_not_copied, [&] {
      if (parts_end_ + parts - parts_retired_ <= size && batches_end_ + batches - retired_ <= size) return true;
      retire();
      return false;
    });
  }

  /// Every thread: checks which batches have been copied, in order.
  HEADRACE_HD void retire() {
    if (retired_ == batches_end_) return;
    if (group_.team() == 0) {
      std::uint64_t retired = retired_;
      for (std::uint32_t found = Group::kTeam; found == Group::kTeam; retired += found) {
        const std::uint64_t number = retired + group_.team_rank();
        const bool open = number >= batches_end_ || group_.load_on_device(view_.done[number & view_.part_mask]) !=
                                                        static_cast<std::uint32_t>(number) + 1;
        const std::uint32_t still = group_.team_ballot(open);
        found = still == 0 ? Group::kTeam : group_.lowest_bit(still);
      }
      if (group_.team_rank() == 0) window_.retired = retired;
    }
    group_.sync();
    const std::uint64_t retired = window_.retired;
    group_.sync();
    if (retired == retired_) return;
    retired_ = retired;
    const Batch& last = view_.batches[(retired_ - 1) & view_.part_mask];
    parts_retired_ = last.first + last.count;
    copied_ = last.packets_end;
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

  /// Every thread: before the host learns that a stream has ended, waits until all its bytes are copied, and reports
  /// how many bytes its incomplete frames have.
  [[nodiscard]] HEADRACE_HD bool settle() {
    for (std::uint32_t e = 0; e < window_.event_count; ++e) {
      const Event& event = view_.scratch->events[e];
      if (event.kind == StreamEvent::opened || event.kind == StreamEvent::closed) continue;
      const std::uint32_t slot = slot_of(event.stream);
      if (slot == kNoSlot) continue;
      const bool copied = wait_until(Leave::parts_not_copied, [&] {
        if (retired_ == batches_end_) return true;
        retire();
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

  /// Every thread: waits until `end` fits in a ring that the host reads. `taken` is the known read position.
  [[nodiscard]] HEADRACE_HD bool wait_for_room(const std::uint64_t& word, std::uint64_t& taken, std::uint64_t end,
                                               std::uint32_t mask, Leave why) {
    return wait_until(why, [&] {
      if (end - taken <= std::uint64_t{mask} + 1) return true;
      if (group_.rank() == 0) publish();  // so that the host knows what to take
      taken = group_.broadcast(group_.rank() == 0 ? group_.load(word) : 0);
      return false;
    });
  }

  /// Every thread: waits until `done()`, which is the same for all. False if it is to leave or has waited too long.
  template <class Done>
  [[nodiscard]] HEADRACE_HD bool wait_until(Leave why, Done done) {
    std::uint64_t since = 0;
    while (!done()) {
      std::uint32_t go = 1;
      if (group_.rank() == 0) {
        const std::uint64_t now = group_.clock_ns();
        if (since == 0) since = now;
        if (now - since > view_.wait_limit_ns) leave(group_, view_, why);
        if (group_.load_on_device(view_.relay[kLeave]) != 0) go = 0;
        group_.relax();
      }
      if (group_.broadcast(go) == 0) return false;
    }
    return true;
  }

  /// One thread: publishes new positions to the host.
  HEADRACE_HD void publish() {
    tell(*view_.replies_end, told_.replies_end, replies_end_);
    tell(*view_.events_end, told_.events_end, events_end_);
    tell(*view_.commands_done, told_.commands_done, commands_done_);
    tell(*view_.copied, told_.copied, copied_);
  }
  HEADRACE_HD void tell(std::uint64_t& word, std::uint64_t& told, std::uint64_t value) const {
    if (told != value) group_.store(word, value);  // pairs with loads of ResidentControl
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
  // Each thread has its own copy of these, with the same values.
  Runs<Group> runs_;
  std::uint64_t commands_done_ = 0;
  std::uint64_t parts_end_ = 0;
  std::uint64_t parts_retired_ = 0;
  std::uint64_t batches_end_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t copied_ = 0;
  std::uint64_t replies_end_ = 0;
  std::uint64_t replies_taken_ = 0;
  std::uint64_t events_end_ = 0;
  std::uint64_t events_taken_ = 0;
  Told told_{};  ///< The values that the publishing thread has published.
};

}  // namespace headrace::ingest::resident
